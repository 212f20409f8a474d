// Completions in a box for an expression: offered below it while the user writes, chosen by arrows, taken by Tab or a click. Ctrl+Space asks
// for it. Other keys in the box are its own affair.

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { accepted, complete, type Completion, type Offer, type Vocabulary } from "../model/completion.ts";

type Box = HTMLInputElement | HTMLTextAreaElement;

export interface Offers {
  /** Something is offered. */
  readonly isOpen: boolean;
  /** Offers completions at the caret. */
  readonly offer: () => void;
  readonly close: () => void;
  /** Does the act of a key; whether it has one here. */
  readonly press: (event: KeyboardEvent) => boolean;
  /** The attributes of the box for screen readers. */
  readonly aria: { readonly "aria-autocomplete": "list"; readonly "aria-controls": string; readonly "aria-activedescendant"?: string };
  readonly list: JSX.Element;
}

/** `taken` hears the box's text after something was taken. */
export function useOffers(box: { readonly current: Box | null }, vocabulary: () => Vocabulary, taken: (text: string) => void): Offers {
  const [offers, setOffers] = useState<Completion | null>(null);
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const close = (): void => setOffers(null);
  const offer = (): void => {
    const { current } = box;
    if (current !== null) {
      setOffers(complete(current.value, current.selectionStart ?? current.value.length, vocabulary()));
      setChosen(0);
    }
  };
  const take = (one: Offer): void => {
    const { current } = box;
    if (offers !== null && current !== null) {
      const { text, caret } = accepted(current.value, offers, one);
      put(current, text, caret);
      taken(text);
      close();
    }
  };
  const press = (event: KeyboardEvent): boolean => {
    const one = offers?.offers[chosen];
    if (event.key === "Tab" && !event.shiftKey && one !== undefined) {
      take(one);
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && offers !== null) {
      const { length } = offers.offers;
      setChosen((chosen + (event.key === "ArrowDown" ? 1 : length - 1)) % length);
    } else if (event.key === " " && event.ctrlKey) {
      offer();
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  };
  const list = (
    <ul class="offers" id={id} role="listbox" aria-label="What may come here" hidden={offers === null}>
      {(offers?.offers ?? []).map((one, index) => (
        <li
          key={one.text}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === chosen}
          onPointerDown={(event) => {
            event.preventDefault();
            take(one);
          }}
        >
          <span class="mono">{one.text}</span> <span class="faint">{one.what}</span>
        </li>
      ))}
    </ul>
  );
  const active = offers === null ? {} : { "aria-activedescendant": `${id}-${chosen}` };
  return { isOpen: offers !== null, offer, close, press, aria: { "aria-autocomplete": "list", "aria-controls": id, ...active }, list };
}

/** Puts a text into a box at once, as the next letter may come before the next frame. */
export function put(box: Box, text: string, caret: number): void {
  box.value = text;
  box.focus();
  box.setSelectionRange(caret, caret);
}
