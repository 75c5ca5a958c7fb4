/**
 * A server that people run themselves reports what it is set to: server BUNDLE SHUFFLER FOLDER THEME [PORT]
 *
 * The device is the server, whoever visits it: it says nothing of them. What it said is in FOLDER, so
 * that its limits outlive restarts, and several processes of it are one device.
 */
import { createServer } from "node:http";

import { open } from "hubbub-client/node";

const [bundle, shuffler, folder, theme, port = "0"] = process.argv.slice(2);
if (!bundle || !shuffler || !folder || !theme) {
  throw new Error("write: server BUNDLE SHUFFLER FOLDER THEME [PORT]");
}
const client = await open({ bundle, shuffler, folder });
const day = 86_400_000;
const report = () => {
  console.log(client.report("theme", theme));
};
report();
setInterval(report, day).unref();

const server = createServer((_request, answer) => answer.end(`a page in ${theme}\n`));
server.listen(Number(port), "127.0.0.1", () => {
  console.log("ready");
});
process.once("SIGTERM", () => {
  server.close();
  void client.close().then((sent) => {
    console.log(sent ? "nothing waits" : "it waits for the next start");
  });
});
