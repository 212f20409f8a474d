// Asks the server which traces it can open, has it open some, and sends it files.

import { ShapeFault } from "../model/json.ts";
import { readStart, type Dropped, type StartInfo } from "../model/start.ts";
import { ApiFault, type Client } from "./client.ts";

/** The choices before traces are open. Throws an `ApiFault`, as all of these do. */
export async function askStart(client: Client): Promise<StartInfo> {
  return understood(() => client.json("start").then(readStart));
}

/** Opens traces of the machine on which the server runs. */
export async function openPaths(client: Client, paths: readonly string[]): Promise<StartInfo> {
  return understood(() => client.post("start/open", JSON.stringify({ paths })).then(readStart));
}

export async function openSample(client: Client): Promise<StartInfo> {
  return understood(() => client.post("start/sample", "").then(readStart));
}

/** Opens files that were sent under this name. */
export async function openUpload(client: Client, upload: string): Promise<StartInfo> {
  return understood(() => client.post("start/open", JSON.stringify({ upload })).then(readStart));
}

/** Sends files one after the other; says after each piece how many bytes of all of them are there. */
export async function sendFiles(client: Client, upload: string, files: readonly Dropped<Blob>[], told: (bytes: number, name: string) => void, signal: AbortSignal): Promise<void> {
  let before = 0;
  for (const { path, size, file } of files) {
    told(before, path);
    await client.send(`start/uploads/${upload}/${encodeURIComponent(path)}`, file, (bytes) => told(before + Math.min(bytes, size), path), signal);
    before += size;
  }
}

/** Has the server forget files; it may have none. */
export async function forgetUpload(client: Client, upload: string): Promise<void> {
  try {
    await client.remove(`start/uploads/${upload}`);
  } catch (error) {
    if (!(error instanceof ApiFault)) {
      throw error;
    }
  }
}

async function understood<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof ShapeFault) {
      throw new ApiFault("nonsense", error.message);
    }
    throw error;
  }
}
