#include "reports/render/style.h"

#include "reports/render/svg.h"

namespace rematch {
namespace {

// In the order of Paint, from kSurface on.
constexpr const char* kLight =
    "--p1:#ffffff;--p2:#171a1f;--p3:#5b6470;--p4:#e9ecf0;--p5:#aeb5bf;--p6:#2470c9;--p7:#dd6e12;"
    "--p8:#16978a;--p9:#7b55c7;--p10:#d9a400;--p11:#c2478c;--p12:#5f6b7a;--p13:#98a2af;"
    "--p14:#cdd3da;--page:#f4f5f7;--edge:#dfe3e8;--tint:#eef4fc;";
constexpr const char* kDark =
    "--p1:#171b21;--p2:#e9ecf0;--p3:#a0a9b5;--p4:#272d36;--p5:#5a6472;--p6:#5aa2f2;--p7:#f09348;"
    "--p8:#3fbcae;--p9:#a78be8;--p10:#e3bd4a;--p11:#e07fb6;--p12:#8b97a6;--p13:#667180;"
    "--p14:#434c58;--page:#0f1216;--edge:#2b323c;--tint:#18222f;";

// Names by which the page's own rules call the colours.
constexpr const char* kPageRules = R"(
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--p2);font:15px/1.5 var(--sans)}
main{max-width:1168px;margin:0 auto;padding:32px 24px 64px}
h1{font-size:26px;line-height:1.25;margin:0 0 6px;letter-spacing:-.01em;overflow-wrap:anywhere}
h2{font-size:21px;line-height:1.3;margin:56px 0 6px;letter-spacing:-.01em;overflow-wrap:anywhere}
h3{font-size:15px;line-height:1.35;margin:0}
p{margin:0;overflow-wrap:anywhere}
.lead,.facts{color:var(--p3)}
.facts{font-size:13px;margin-top:4px}
a{color:var(--p6);text-decoration:none}
a:hover,a:focus-visible{text-decoration:underline}
nav ul{margin:16px 0 0;padding:0;list-style:none;font-size:14px}
nav li{padding:3px 0}
.links{display:flex;flex-wrap:wrap;gap:4px 18px;margin:14px 0 0;font-size:13px}
.tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:16px;margin:20px 0 0;padding:0}
.tile{background:var(--p1);border:1px solid var(--edge);border-radius:10px;padding:14px 16px}
.tile b{display:block;font-size:22px;line-height:1.3;font-weight:600;letter-spacing:-.01em}
.tile span{display:block;color:var(--p3);font-size:13px;overflow-wrap:anywhere}
figure{margin:16px 0 0;background:var(--p1);border:1px solid var(--edge);border-radius:10px;padding:18px 20px;
min-width:0}
figure>p,.inside>p{color:var(--p3);font-size:13px;margin:2px 0 12px}
figure.folded{margin-top:10px;padding:0}
figure.folded summary{padding:12px 20px}
.inside{padding:0 20px 18px}
figure>p.after{margin:12px 0 0}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:0 16px;align-items:start}
.panels{display:grid;grid-template-columns:repeat(3,1fr);gap:20px 16px}
svg{display:block;width:100%;height:auto}
.narrow{display:none}
code,.code{font-family:var(--mono);font-size:.92em}
.panels{margin-top:14px}
.verdict{margin-top:14px;font-size:17px;font-weight:600}
ul{margin:8px 0 0;padding-left:20px;font-size:13px;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;font-size:13px;line-height:1.4;font-variant-numeric:tabular-nums}
th{text-align:left;color:var(--p3);font-weight:500;padding:6px 16px 6px 0;border-bottom:1px solid var(--p5);
vertical-align:bottom}
td{padding:8px 16px 0 0;vertical-align:top;border-top:1px solid var(--edge);overflow-wrap:anywhere}
tbody:first-of-type tr:first-child td{border-top:0}
tr.why td{border-top:0;padding:1px 0 8px 0;color:var(--p3)}
tr.alone td{padding-bottom:8px}
.right{text-align:right}
td.name{font-weight:600}
@media (min-width:900px){td.whole{white-space:nowrap}}
.words summary{display:block;cursor:inherit;padding:0}
.bad{color:var(--p7);font-weight:600}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:12px 0 0;font-size:13px}
dt{color:var(--p3)}
dd{margin:0;overflow-wrap:anywhere}
pre{margin:12px 0 0;padding:12px 14px;background:var(--page);border-radius:8px;font:13px/1.5 var(--mono);
white-space:pre-wrap;overflow-wrap:anywhere}
summary{cursor:pointer;color:var(--p3);font-size:13px;padding:6px 0}
summary h3{display:inline;color:var(--p2)}
summary:hover h3,summary:focus-visible h3{color:var(--p6)}
@media (max-width:899px){
main{padding:20px 16px 40px}
h1{font-size:22px}h2{font-size:19px;margin-top:40px}
.wide{display:none}.narrow{display:block}
.pair{grid-template-columns:1fr}
.panels{grid-template-columns:repeat(auto-fill,minmax(270px,1fr))}
.tiles{grid-template-columns:1fr 1fr;gap:10px}
.tile{padding:10px 12px}.tile b{font-size:18px}
figure{padding:14px 12px}
figure svg.narrow{max-width:560px}
figure.folded summary{padding:12px}.inside{padding:0 12px 14px}
.scroll{overflow-x:auto;container-type:inline-size;background:
linear-gradient(to left,var(--p1) 24px,transparent) right/48px 100% no-repeat local,
linear-gradient(to left,var(--p14),transparent) right/12px 100% no-repeat scroll}
.scroll table{width:max-content;min-width:100%}
.scroll th,.scroll td{white-space:nowrap;padding-right:14px}
.scroll th:first-child,.scroll td.name{position:sticky;left:0;max-width:38vw;background:var(--p1);white-space:normal}
.scroll tr.why td{padding-right:0;white-space:normal}
.scroll tr.why td>*{position:sticky;left:0;display:block;width:calc(100vw - 60px);width:100cqw}
.words summary{display:grid;grid-template-columns:auto 1fr;gap:6px;cursor:pointer}
.words summary::before{content:"\25b8"}.words[open] summary::before{content:"\25be"}
.words:not([open]) span{display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2;overflow:hidden}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:6px}
}
@media print{body{background:#fff}figure,.tile{break-inside:avoid}
details::details-content{content-visibility:visible;block-size:auto}}
)";

}  // namespace

std::string picture_styles() {
  std::string styles = std::string(":root{color-scheme:light dark;")
                           .append("--sans:system-ui,-apple-system,\"Segoe UI\",Roboto,")
                           .append("\"Helvetica Neue\",Arial,\"DejaVu Sans\",sans-serif;")
                           .append("--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,")
                           .append("\"DejaVu Sans Mono\",monospace;")
                           .append(kLight)
                           .append("}\n@media (prefers-color-scheme:dark){:root{")
                           .append(kDark)
                           .append("}}\nsvg .halo{paint-order:stroke;")
                           .append("stroke:var(--p1);stroke-width:3px;stroke-linejoin:round}\n")
                           .append("svg text{font-family:var(--sans);")
                           .append("font-variant-numeric:tabular-nums}\npath,line,circle,rect")
                           .append("{fill:none}\n");
  for (int paint = 1; paint < kNumPaints; ++paint) {
    const std::string value = std::to_string(paint);
    styles += "svg .f" + value + "{fill:var(--p" + value + ")}";
    styles += "svg .s" + value + "{stroke:var(--p" + value + ")}\n";
  }
  return styles;
}

std::string page_styles() { return kPageRules; }

}  // namespace rematch
