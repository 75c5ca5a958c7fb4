/** hubbub for Node. */
export { open, type NodeOptions } from "./node/open.js";
export * from "./client.js";
