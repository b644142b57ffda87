// Tables sort by a click on a column's title, and copy as text with tabs between cells. Without
// scripts the page shows the same tables in their first order.
(() => {
  const factors = {B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40,
                   ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600};
  const textOf = cell => cell ? cell.innerText.replace(/\s+/g, ' ').trim() : '';

  // The value of a cell such as "29.1 GiB" or "-62 %"; NaN without a leading number.
  const valueOf = text => {
    const found = /^([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*([A-Za-z]*)/.exec(text);
    return found ? Number(found[1]) * (factors[found[2]] ?? 1) : NaN;
  };

  // Cells without a measurement stay last in both orders.
  const compare = (a, b, sign) => {
    if ((a === '-') !== (b === '-')) return a === '-' ? 1 : -1;
    const difference = valueOf(a) - valueOf(b);
    return sign * (difference || a.localeCompare(b, 'en', {numeric: true}));
  };

  const makeSortable = table => {
    const heads = [...table.tHead.rows[0].cells];
    const sort = column => {
      const sign = heads[column].ariaSort === 'ascending' ? -1 : 1;
      for (const head of heads) head.removeAttribute('aria-sort');
      heads[column].ariaSort = sign > 0 ? 'ascending' : 'descending';
      // A row and the words below it share a body.
      const bodies = [...table.tBodies];
      const groups = bodies.length > 1 ? bodies : [...bodies[0].rows];
      const cellOf = group => textOf((group.rows ? group.rows[0] : group).cells[column]);
      const parent = groups[0].parentNode;
      const keyed = groups.map(group => [cellOf(group), group]);
      keyed.sort((a, b) => compare(a[0], b[0], sign));
      for (const [, group] of keyed) parent.append(group);
    };
    heads.forEach((head, column) => {
      head.tabIndex = 0;
      head.title = 'Sort';
      head.addEventListener('click', event => event.target.closest('a') || sort(column));
      head.addEventListener('keydown', event => event.key === 'Enter' && sort(column));
    });
  };

  const copy = async (text, button) => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'The browser does not allow copying';
    }
    setTimeout(() => { button.textContent = 'Copy as text'; }, 2000);
  };

  const addCopyButton = table => {
    const button = document.createElement('button');
    button.className = 'copy';
    button.textContent = 'Copy as text';
    button.addEventListener('click', () => {
      const lines = [...table.rows].map(row => [...row.cells].map(textOf).join('\t'));
      copy(lines.join('\n') + '\n', button);
    });
    table.closest('.scroll').after(button);
  };

  for (const table of document.querySelectorAll('.scroll table')) {
    if (!table.tBodies.length || !table.tHead) continue;
    makeSortable(table);
    addCopyButton(table);
  }
})();
