/** hubbub/ledger: the element <hubbub-ledger>, for an app to show its person. */
export { defineLedger, type LedgerElement, type LedgerWords } from "./browser/ledger_element.js";
