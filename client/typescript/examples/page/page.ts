/** A plain page: it reports a choice, and shows its person what left the device. */
import { open } from "hubbub-client";
import { defineLedger } from "hubbub-client/ledger";

defineLedger();
const client = await open({ bundle: "app.hubbub", shuffler: location.origin });
const ledger = document.querySelector("hubbub-ledger");
const theme = document.querySelector<HTMLSelectElement>("#theme");
const outcomeLine = document.querySelector("#said");
if (!ledger || !theme || !outcomeLine) throw new Error("index.html is another one");
ledger.client = client;
theme.addEventListener("change", () => {
  outcomeLine.textContent = client.report("theme", theme.value);
});
