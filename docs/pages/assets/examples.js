// Code that is wider than the page is folded; blocks with a frame, whose lines are borders, scroll.
document$.subscribe(() => {
  for (const block of document.querySelectorAll(".highlight")) {
    block.classList.toggle("folds", !/[\u2500-\u257f]/.test(block.textContent));
  }
});

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
