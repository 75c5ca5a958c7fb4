/** hubbub for browsers: pages and workers. For Node: hubbub-client/node. */
export { open, type BrowserOptions } from "./browser/open.js";
export * from "./client.js";
