/** The page at /docs. Its addresses are relative, so that it also works behind a proxy's path prefix. */
export const DOCS_PATH = '/docs';
export const DOCUMENT_PATH = '/openapi.json';
export const ASSET_PATH = `${DOCS_PATH}/assets/:asset`;

const ASSETS = 'docs/assets';

export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Millrace API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${ASSETS}/swagger-ui.css">
<link rel="stylesheet" href="${ASSETS}/page.css">
</head>
<body>
<main id="docs"><noscript>This page needs JavaScript. The document itself is at <a href="openapi.json">openapi.json</a>.</noscript></main>
<script src="${ASSETS}/swagger-ui-bundle.js"></script>
<script src="${ASSETS}/page.js"></script>
</body>
</html>`;

/** Starts Swagger UI: a request can be sent without a click more, and nothing is asked of other servers. */
export const SCRIPT = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#docs',
  validatorUrl: 'none',
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 2,
});
`;

/** Swagger UI, plainer: there is one server, and most of what it shows large is asked for seldom. */
export const STYLE = `body { margin: 0; background: #f6f8fa; }
noscript { display: block; padding: 2rem; font: 16px/1.5 system-ui, sans-serif; }
.swagger-ui .wrapper { max-width: 72rem; }
.swagger-ui .info { margin: 2rem 0 1rem; }
.swagger-ui .info .title { font-size: 2rem; color: #1c2733; }
.swagger-ui .info .title small { top: -.35rem; }
.swagger-ui .info .markdown p, .swagger-ui .info .renderedMarkdown p { font-size: .9375rem; line-height: 1.55;
  max-width: 52rem; margin: 0 0 .75rem; }
.swagger-ui .info__license { display: none; }
.swagger-ui .markdown code, .swagger-ui .renderedMarkdown code { color: #1c2733; background: #e7ecf1;
  font-weight: 500; border-radius: .25rem; padding: .05rem .3rem; }
.swagger-ui .scheme-container { background: none; box-shadow: none; padding: 0 0 1rem; margin: 0; }
.swagger-ui .scheme-container .servers, .swagger-ui .scheme-container .servers-title,
.swagger-ui .scheme-container:not(:has(.auth-wrapper)) { display: none; }
.swagger-ui .opblock-tag { border-bottom: 0; margin: 1rem 0 .25rem; padding: .5rem 0; display: grid;
  grid-template-columns: 1fr auto; }
.swagger-ui .opblock-tag > a { font-size: 1.25rem; color: #1c2733; }
.swagger-ui .opblock-tag small { grid-row: 2; grid-column: 1; padding: .25rem 0 0; font-size: .875rem;
  color: #51606e; line-height: 1.5; }
.swagger-ui .opblock-tag small p { margin: 0; }
.swagger-ui .opblock, .swagger-ui .opblock.opblock-get, .swagger-ui .opblock.opblock-post { box-shadow: none; border-radius: .5rem; margin: 0 0 .5rem; background: #fff;
  border-color: #d8dfe6; }
.swagger-ui .opblock .opblock-summary { border-color: #d8dfe6; padding: .375rem .5rem; }
.swagger-ui .opblock .opblock-summary-method { border-radius: .375rem; min-width: 4.5rem; font-size: .8125rem;
  text-shadow: none; }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: #1a7f4b; }
.swagger-ui .opblock.opblock-get .opblock-summary-method { background: #1f6feb; }
.swagger-ui .opblock .opblock-summary-path { font-size: .9375rem; font-weight: 600; }
.swagger-ui .opblock .opblock-summary-description { font-size: .875rem; color: #51606e; }
.swagger-ui .opblock .opblock-section-header { box-shadow: none; background: #f6f8fa; min-height: 2.75rem; }
.swagger-ui .btn.execute { background: #1f6feb; border-color: #1f6feb; border-radius: .375rem; }
.swagger-ui textarea, .swagger-ui input[type=text], .swagger-ui select { border-radius: .375rem; box-shadow: none;
  border-color: #b8c2cc; }
.swagger-ui textarea { border: 1px solid #b8c2cc; }
.swagger-ui textarea.body-param__text { min-height: 9rem; }
.swagger-ui .btn.authorize { color: #1a7f4b; border-color: #1a7f4b; box-shadow: none; border-radius: .375rem; }
.swagger-ui .btn.authorize svg { fill: #1a7f4b; }
.swagger-ui .highlight-code > .microlight { max-height: 24rem; border-radius: .375rem; }
.swagger-ui .response-col_links { display: none; }
.swagger-ui section.models { border-color: #d8dfe6; background: #fff; border-radius: .5rem; }
`;
