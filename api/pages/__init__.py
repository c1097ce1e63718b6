"""Pages for people, at `/`. Each has a module here with its routes, and a template in `web/templates`.

A page is added like this: a router made by `rendering.page_router()`, whose routes answer with
`rendering.page(request, "name.html.jinja", ...)`; it is listed in `api.pages.routes.ROUTERS`, and its path in
`api.requests.page_paths`. Errors need no care: `problem_pages` shows the problems of the API as pages.
"""
