// What a reader of a page would trip over: sideways scrolling, letters too faint, text that is cut off.
(() => {
  const rgb = text => text.match(/[\d.]+/g).slice(0, 3).map(Number);
  const light = c => { const [r, g, b] = rgb(c).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((m, n) => n - m); return (x + 0.05) / (y + 0.05); };
  const ground = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
    if (!/, 0\)$|transparent/.test(c)) return c; } return "rgb(255, 255, 255)"; };
  const seen = [...document.querySelectorAll("p, li, td, th, h1, h2, dt, dd, summary, pre, small, figcaption span, .badge, a")]
    .filter(e => e.textContent.trim() && e.getBoundingClientRect().width > 0 && !e.matches(".skip"));
  return {
    sideways: document.documentElement.scrollWidth > innerWidth,
    faint: seen.filter(e => contrast(getComputedStyle(e).color, ground(e)) < 4.5).map(e => e.outerHTML.slice(0, 120)),
    cut: seen.filter(e => { const b = e.getBoundingClientRect(); return b.right > innerWidth + 1 || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline"; })
      .map(e => e.textContent.slice(0, 80)),
    empty: [...document.querySelectorAll("canvas")].filter(c => !c.closest("[hidden]") && c.getBoundingClientRect().height < 20).length,
  };
})()
