// The entry point of the page.

import { render } from "preact";
import "./view/style.css";
import { App } from "./view/app.tsx";
import { openPage } from "./view/page.ts";

const root = document.getElementById("page");
if (root !== null) {
  render(<App page={openPage()} />, root);
}
