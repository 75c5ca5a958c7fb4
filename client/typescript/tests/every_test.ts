/** Imports every file of tests, so that one process runs them: each would compile the client anew. */
import { readdirSync } from "node:fs";

for (const name of readdirSync(new URL(".", import.meta.url))) {
  if (name.endsWith(".test.js")) await import(`./${name}`);
}
