"""Draw SVG charts and HTML pages that open offline, from one writer of markup and one palette.

    palette      Define the colours of every picture, for light pages, dark pages and paper.
    element      Write HTML and SVG elements; escape every text that is not markup.
    scale        Format coordinates, and choose round ends of an axis.
    figure       Draw texts, lines and a titled figure inside an HTML page.
    svg          Wrap a drawing as a self-contained SVG document.
    page         Define the style of an HTML page around a picture, which opens offline.

Constraints: pure functions; the same input gives the same bytes; a picture needs nothing from outside.
"""
