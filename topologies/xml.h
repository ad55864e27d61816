/* XML as a tree of elements and attributes with lines, through GMarkup: text is skipped, entities
 * that a document declares are refused (they could unfold to any size), nesting ends at 64. */
#ifndef TOPOLOGIES_XML_H
#define TOPOLOGIES_XML_H

#include "sim/base/error.h"

typedef struct OrrXml OrrXml;
struct OrrXml {
    char *name;
    char **keys, **values; /* NULL-terminated, same order */
    char *text;            /* of an element without children; NULL */
    OrrXml *parent;
    GPtrArray *children; /* OrrXml */
    uint32_t line;
};

/* The root element; NULL with @error "NAME:LINE: ...". */
OrrXml *orr_xml_parse(const char *name, const char *text, gsize length, GError **error);
void orr_xml_free(OrrXml *xml);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(OrrXml, orr_xml_free)
/* NULL if there is none. */
const char *orr_xml_get(const OrrXml *xml, const char *key);

#endif
