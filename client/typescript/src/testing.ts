/** For tests of apps: clients in memory, and the raw values that an app reports. */
export { KeyedBits } from "./mechanisms/keyed.js";
export { MemoryStorage } from "./client/memory.js";
export { capture, memoryClient, type Captured, type Report } from "./testing/capture.js";
export { FakeShuffler } from "./testing/shuffler.js";
