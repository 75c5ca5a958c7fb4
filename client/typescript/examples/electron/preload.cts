/** What a window may ask of the main process: report(metric, value), and what came of it. */
// eslint-disable-next-line @typescript-eslint/no-require-imports -- a sandboxed preload is CommonJS
import electron = require("electron");

electron.contextBridge.exposeInMainWorld("telemetry", {
  report: (metric: string, value: string) => electron.ipcRenderer.invoke("report", metric, value),
});
