/**
 * Electron: the main process has the one client; windows report through it.
 *
 * It is the layer of Node: certificates as the bundle has them, and state that outlives what a person
 * clears in a window.
 */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { app, BrowserWindow, ipcMain } from "electron";
import { open } from "hubbub-client/node";

const { SHUFFLER: shuffler } = process.env;
const client = await open({
  bundle: join(app.getAppPath(), "app.hubbub"),
  folder: join(app.getPath("userData"), "hubbub"),
  ...(shuffler ? { shuffler } : {}),
});
ipcMain.handle("report", (_event, metric, value) => client.report(metric, value));

let closed = false;
app.on("before-quit", (event) => {
  if (closed) return;
  event.preventDefault(); // until what waits is sent, for ten seconds at most
  void client.close().then(() => {
    closed = true;
    app.quit();
  });
});

await app.whenReady();
const preload = join(dirname(fileURLToPath(import.meta.url)), "preload.cjs");
await new BrowserWindow({ webPreferences: { preload } }).loadFile("index.html");
