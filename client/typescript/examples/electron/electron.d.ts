/** Of Electron's own types what the example uses; an app has the real ones. */
declare module "electron" {
  export const app: {
    getAppPath(): string;
    getPath(name: "userData"): string;
    whenReady(): Promise<void>;
    on(event: "before-quit", listener: (event: { preventDefault(): void }) => void): void;
    quit(): void;
  };
  export const ipcMain: {
    handle(
      channel: string,
      listener: (event: unknown, metric: string, value: string) => unknown,
    ): void;
  };
  export const ipcRenderer: { invoke(channel: string, ...values: unknown[]): Promise<unknown> };
  export const contextBridge: { exposeInMainWorld(name: string, client: object): void };
  export class BrowserWindow {
    constructor(options: { webPreferences: { preload: string } });
    loadFile(path: string): Promise<void>;
  }
}
