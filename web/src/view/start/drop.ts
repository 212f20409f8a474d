// The files of a drop or a choice of the user, folders with all that is in them.

import type { Dropped } from "../../model/start.ts";

/** More files than any trace has: the page says so when a user drops a whole disk. */
const FILES_MAX = 10_000;

/** The dropped files. Throws a `RangeError` if that is far too much. */
export async function droppedFiles(data: DataTransfer): Promise<readonly Dropped<Blob>[]> {
  // All entries are taken at once: they are there only while the drop is told of.
  const entries = [...data.items].flatMap((item) => item.webkitGetAsEntry?.() ?? []);
  if (entries.length === 0) {
    return pickedFiles(data.files);
  }
  const found: Dropped<Blob>[] = [];
  for (const entry of entries) {
    await collect(entry, "", found);
  }
  return found;
}

/** The chosen files: of a folder, files say where in it they are. */
export function pickedFiles(files: Iterable<File>): readonly Dropped<Blob>[] {
  return [...files].map((file) => ({ path: file.webkitRelativePath || file.name, size: file.size, file }));
}

async function collect(entry: FileSystemEntry, within: string, found: Dropped<Blob>[]): Promise<void> {
  const path = `${within}${entry.name}`;
  if (isFile(entry)) {
    const file = await new Promise<File>((done, fail) => entry.file(done, fail));
    found.push({ path, size: file.size, file });
    if (found.length > FILES_MAX) {
      throw new RangeError(`There are more than ${FILES_MAX.toLocaleString("en")} files in the drop.`);
    }
  } else if (isFolder(entry)) {
    const reader = entry.createReader();
    // A reader tells some entries at a time, and none at the end.
    for (let part = await read(reader); part.length > 0; part = await read(reader)) {
      for (const inner of part) {
        await collect(inner, `${path}/`, found);
      }
    }
  }
}

function read(reader: FileSystemDirectoryReader): Promise<FileSystemEntry[]> {
  return new Promise((done, fail) => reader.readEntries(done, fail));
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}

function isFolder(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}
