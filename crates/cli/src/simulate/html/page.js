// The page of `ipvs-topo simulate -o html`: finding a Service, and printing everything.
const all = [...document.querySelectorAll("details:not(.same)")];
const same = [...document.querySelectorAll("details.same")];
const find = document.getElementById("find");
find?.addEventListener("input", () => {
  const wanted = find.value.trim().toLowerCase();
  let shown = 0;
  for (const one of all) {
    one.hidden = !one.querySelector("b").textContent.toLowerCase().includes(wanted);
    shown += one.hidden ? 0 : 1;
  }
  for (const one of same) {
    one.open = wanted !== "";
  }
  document.getElementById("found").textContent = wanted ? `${shown} of ${all.length}` : "";
});
addEventListener("beforeprint", () => [...same, ...all].forEach((one) => { one.dataset.was = one.open; one.open = true; }));
addEventListener("afterprint", () => [...same, ...all].forEach((one) => { one.open = one.dataset.was === "true"; }));
