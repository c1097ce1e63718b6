// The page of a job that has ended is loaded anew, with its result.
"use strict";
document.body.addEventListener("warpsmith:state", (event) => {
  if (["done", "failed", "cancelled"].includes(event.detail.data.state)) location.reload();
});
