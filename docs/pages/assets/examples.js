// The copy button of an example copies its code: no prompts, no results.
document$.subscribe(() => {
  for (const block of document.querySelectorAll(".highlight")) {
    const lines = block.querySelector("code")?.textContent.split("\n") ?? [];
    const code = lines.filter((line) => /^(>>>|\.\.\.)( |$)/.test(line)).map((line) => line.slice(4));
    if (code.length) block.dataset.copy = code.join("\n");
  }
});
