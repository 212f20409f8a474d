// A dialog in front of the page. The browser keeps Tab inside, closes it with Esc, and gives the focus back to the element that had it before; so a button
// that closes it goes the same way. The title has the focus first: keys scroll the text, and a screen reader begins there.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface ModalOptions {
  readonly title: string;
  /** Its id, and the class beside `help`. */
  readonly name: string;
  /** The dialog is closed already. */
  readonly closed: () => void;
  /** `close` closes it. */
  readonly children: (close: () => void) => ComponentChildren;
}

export function Modal({ title, name, closed, children }: ModalOptions): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    head.current?.focus();
  }, []);
  const close = (): void => dialog.current?.close();
  return (
    <dialog class={`help ${name}`} ref={dialog} onClose={closed} aria-labelledby={`${name}-title`}>
      <h2 id={`${name}-title`} ref={head} tabIndex={-1}>
        {title}
      </h2>
      {children(close)}
      <button type="button" class="button" onClick={close}>
        Close
      </button>
    </dialog>
  );
}

/** Whether one is open: keys of the page are not meant then. */
export function isModalOpen(): boolean {
  return document.querySelector("dialog:modal") !== null;
}
