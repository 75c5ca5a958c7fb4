// Ours: the value is randomized, kept, sealed and sent.
import { open } from "../../client/typescript/src/index.ts";

export { open };

export async function send(address) {
  const client = await open({ bundle: "/app.hubbub", shuffler: address, holdSeconds: null });
  client.report("theme", "dark");
  void client.flush();
}
