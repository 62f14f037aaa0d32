// Lines of code that are wider than the page are folded; lines of frames, whose borders must stay in place, scroll.
document$.subscribe(() => {
  for (const line of document.querySelectorAll(".highlight code > span")) {
    line.classList.toggle("folds", !/[\u2500-\u257f]/.test(line.textContent));
  }
  for (const code of document.querySelectorAll(".highlight code")) shrink(code);
});

// Names in tables may break after a dot, an underscore, a bracket or an equals sign, and nowhere else.
document$.subscribe(() => {
  for (const code of document.querySelectorAll(".md-typeset__table td code")) {
    for (const text of [...code.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE)) {
      const parts = text.data.split(/(?<=[._(=])/);
      text.replaceWith(...parts.flatMap((part, at) => (at ? [document.createElement("wbr"), part] : [part])));
    }
  }
});

// On phones, tables that are wider than the page show a row as a card; formulas that are wider are smaller.
document$.subscribe(() => {
  if (!matchMedia("(max-width: 37.5em)").matches) return;
  for (const table of document.querySelectorAll(".md-typeset__table > table")) {
    const heads = [...table.querySelectorAll("thead th")];
    const rows = [...table.querySelectorAll("tbody tr")];
    const numbers = heads.filter((head) => head.style.textAlign === "right").length;
    const wrap = table.closest(".md-typeset__scrollwrap");
    if (wrap.scrollWidth <= wrap.clientWidth || (rows.length > 20 && numbers * 2 >= heads.length)) continue;
    table.classList.add("cards");
    for (const row of rows) [...row.cells].forEach((cell, at) => (cell.dataset.label = heads[at].textContent));
  }
  for (const formula of document.querySelectorAll(".formula")) shrink(formula, 0.55);
});

// What is a little wider than its place has smaller letters.
function shrink(element, least = 0.8) {
  const fits = element.clientWidth / element.scrollWidth;
  if (fits < 1) element.style.fontSize = `calc(${Math.max(least, fits * 0.97)} * ${getComputedStyle(element).fontSize})`;
}

// The copy button of an example copies its code: no prompts, no results.
document$.subscribe(() => {
  for (const block of document.querySelectorAll(".highlight")) {
    const lines = block.querySelector("code")?.textContent.split("\n") ?? [];
    const code = lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line)).map((line) => line.slice(4));
    if (code.length) block.dataset.copy = code.join("\n");
  }
});

// Pictures have a second drawing for phones, whose letters keep their size.
document$.subscribe(() => {
  for (const image of document.querySelectorAll('img[src*="gallery/"], img[src*="pictures/"]')) {
    const narrow = image.getAttribute("src").replace(/(-dark)?\.svg(?=#|$)/, "-narrow$1.svg");
    if (image.closest("picture") || !narrow.includes("-narrow")) continue;
    const picture = document.createElement("picture");
    const source = document.createElement("source");
    source.media = "(max-width: 37.5em)";
    source.srcset = narrow;
    image.replaceWith(picture);
    picture.append(source, image);
  }
});
