#include "reports/gate/loss_curve.h"

#include "policies/base/json_fwd.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

RunLosses parse(const std::string& text, const LossColumns& columns = {}) {
  return parse_loss_curve(text, "mine", columns);
}

// Returns text such as "0:2.5 10:2.25 20:-", sorted by step. A dash stands for a loss that is not
// finite.
std::string summary(const RunLosses& curve) {
  std::string text;
  for (const LossPoint& point : curve.points) {
    std::string loss = point.loss ? std::to_string(*point.loss) : "-";
    if (point.loss) loss.erase(loss.find_last_not_of('0') + 1);
    text += (text.empty() ? "" : " ") + std::to_string(point.step) + ":" + loss;
  }
  return text;
}

std::string refusal(const std::string& text, const LossColumns& columns = {}) {
  try {
    return "read: " + summary(parse(text, columns));
  } catch (const FormatError& error) {
    return error.what();
  }
}

const LossColumns kTensorBoard = {"Step", "Value"};

}  // namespace

TEST_CASE("loss curves are read in the formats that trainers write") {
  struct Row {
    const char* what;
    std::string text;
    LossColumns columns;
    const char* curve;
  };
  const std::vector<Row> rows = {
      {"CSV", "step,loss\n0,2.5\n10,2.25\n", {}, "0:2.5 10:2.25"},
      {"other columns beside", "epoch,step,lr,loss\n0,0,1e-3,2.5\n", {}, "0:2.5"},
      {"capitals, blanks, carriage returns", "Step, Loss\r\n0, 2.5\r\n\r\n", {}, "0:2.5"},
      {"a byte order mark and semicolons", "\xEF\xBB\xBFstep;loss\n0;2.5\n", {}, "0:2.5"},
      {"tabs, no newline at the end", "step\tloss\n0\t+2.5", {}, "0:2.5"},
      {"TensorBoard's CSV", "Wall time,Step,Value\n1.6e9,0,2.5\n", kTensorBoard, "0:2.5"},
      {"quotes", "\"step\",\"a, \"\"b\"\"\",loss\n0,\"1,5\",2.5\n", {}, "0:2.5"},
      {"steps as floats", "step,loss\n0.0,2.5\n1e1,2.25\n", {}, "0:2.5 10:2.25"},
      {"out of order", "step,loss\n10,2.25\n0,2.5\n", {}, "0:2.5 10:2.25"},
      {"rows of a validation", "step,loss,eval\n0,2.5,\n0,,3\n", {}, "0:2.5"},
      {"losses that are not finite", "step,loss\n0,nan\n1,-inf\n2,Infinity\n", {}, "0:- 1:- 2:-"},
      {"JSON lines",
       "{\"step\": 0, \"loss\": 2.5}\n{\"loss\": 2.25, \"step\": 10}\n",
       {},
       "0:2.5 10:2.25"},
      {"lines of settings and of a validation",
       "{\"run\": {\"seed\": 1}}\n{\"step\": 0, \"loss\": 2.5}\n{\"step\": 0, \"eval_loss\": 3}\n",
       {},
       "0:2.5"},
      {"numbers in quotes", "{\"step\": \"0\", \"loss\": \"2.5\"}\n", {}, "0:2.5"},
      {"Python's words",
       "{\"step\": 0, \"loss\": NaN, \"NaN\": \"a \\\" NaN\"}\n"
       "{\"step\": 1, \"loss\": -Infinity}\n",
       {},
       "0:- 1:-"},
      {"a key with a slash",
       "{\"step\": 0, \"train/loss\": 2.5}\n",
       {"step", "train/loss"},
       "0:2.5"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(refusal(row.text, row.columns) == "read: " + std::string(row.curve));
  }
}

TEST_CASE("every digit of a loss counts") {
  CHECK(*parse("step,loss\n0,0.10000000000000002\n").points[0].loss == 0.10000000000000002);
  CHECK(*parse("{\"step\":0,\"loss\":0.10000000000000002}").points[0].loss == 0.10000000000000002);
}

TEST_CASE("a row without a loss is stored with its line number") {
  const RunLosses curve = parse("step,loss\n0,2.5\n1,\n,\n");
  REQUIRE(curve.empty.size() == 1);
  CHECK(curve.empty[0].step == 1);
  CHECK(curve.empty[0].line == 3);
  CHECK(place_of(curve, curve.points[0]) == "mine:2:3");
  CHECK(parse("{\"step\": 0, \"loss\": 1}\n{\"step\": 1, \"loss\": null}\n").empty.size() == 1);
}

TEST_CASE("the error for a malformed loss curve gives the line and column") {
  struct Row {
    std::string text;
    const char* message;
  };
  const std::vector<Row> rows = {
      {"", "mine: is empty"},
      {"\n\r\n", "mine: is empty"},
      {"step,loss\n", "mine: no row has a 'loss'"},
      {"step,loss\n0,\n", "mine: no row has a 'loss'"},
      {"step,train_loss\n0,1\n",
       "mine:1:1: the header has no column 'loss'; known: step, train_loss; name it "
       "with --loss-column"},
      {"stp,loss\n0,1\n",
       "mine:1:1: the header has no column 'step'; did you mean 'stp'?; name it with "
       "--step-column"},
      {"0,2.5\n1,2\n", "mine:1:1: the header has no column 'step'"},
      {"step,loss,loss\n0,1,2\n", "mine:1:6: the header has column 'loss' twice"},
      {"step,loss\n0,1\n1,2,3\n", "mine:3:1: this row has 3 cells, but the header has 2"},
      {"step,loss\n0,1\n1", "mine:3:1: this row has 1 cell, but the header has 2"},
      {"step,loss\n0,1\n1,N/A\n", "mine:3:3: 'N/A' is not a valid loss; a number is expected"},
      {"step,loss\n0,1.5 (avg)\n", "mine:2:3: '1.5 (avg)' is not a valid loss"},
      {"step,loss\n0,1e999\n", "mine:2:3: '1e999' is not a valid loss"},
      {"step,loss\nten,1\n", "mine:2:1: 'ten' is not a valid step; a number is expected"},
      {"step,loss\n0.5,1\n", "mine:2:1: '0.5' is not a step; a whole number from 0 is expected"},
      {"step,loss\n-1,1\n", "mine:2:1: '-1' is not a step"},
      {"step,loss\nnan,1\n", "mine:2:1: 'nan' is not a step"},
      {"step,loss\n,1\n", "mine:2:2: a loss without a 'step'"},
      {"step,loss\n0,1\n1,2\n0,3\n", "mine:4:3: step 0 appears twice, first in line 2; keep one"},
      {"step,loss\n0,\"1\n", "mine:2:3: a quoted cell must end at its closing quote"},
      {"step,loss\n0,\"1\"2\n", "mine:2:3: a quoted cell must end at its closing quote"},
      {std::string("step,loss\n0,\0", 13), "mine: is not text; export TensorBoard's events"},
      {"{\"step\": 0, \"loss\": 1}\n{\"step\": 1, \"loss\": }\n",
       "mine:2: malformed JSON at column 21"},
      {"{\"step\": 0, \"step\": 1, \"loss\": 1}\n", "mine:1: key \"step\" appears twice"},
      {"{\"step\": 0, \"loss\": [1]}\n", "mine:1:13: '[1]' is not a valid loss"},
      {"{\"loss\": 1}\n", "mine:1:2: a loss without a 'step'"},
      {"{\"step\": 0, \"train_loss\": 1}\n", "mine: no line has the key 'loss'"},
      {"{\n \"log_history\": []\n}\n", "mine:1:1: is not a JSON object; JSON lines have"},
      {"[{\"step\": 0, \"loss\": 1}]\n", "mine:1:1: is not a JSON object"},
      {"{\"step\": 0, \"loss\": 1}\n0,1\n", "mine:2:1: is not a JSON object"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string message = refusal(row.text);
    CHECK_THAT(message, Catch::StartsWith(row.message));
    CHECK(message.find('\n') == std::string::npos);
  }
}

}  // namespace rematch
