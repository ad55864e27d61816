/* The little of protocol buffers that Chakra traces need: messages one behind the other, each with
 * its length as a varint in front, and in them fields of the four wire types.
 *
 * Source: Protocol Buffers documentation, "Encoding". Left out: groups. */
#ifndef TRACES_PROTOBUF_H
#define TRACES_PROTOBUF_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const uint8_t *at, *end;
} OrrWire;

typedef struct {
    uint32_t number;
    uint8_t type;   /* 0 varint, 1 eight bytes, 2 bytes, 5 four bytes */
    uint64_t value; /* of all types but 2 */
    OrrWire bytes;  /* of type 2 */
} OrrWireField;

/* A message of a delimited stream; false at the end, or (is_sound false) where it is cut. */
bool orr_wire_message(OrrWire *stream, OrrWire *message, bool *is_sound);
/* The next field; false at the end, or (is_sound false) where the bytes are no field. */
bool orr_wire_field(OrrWire *message, OrrWireField *field, bool *is_sound);
/* The numbers of a repeated field, packed (type 2) or single, appended to @to (uint64_t). */
bool orr_wire_numbers(const OrrWireField *field, GArray *to);

/* Writers append to @to. */
void orr_wire_put_varint(GByteArray *to, uint64_t value);
void orr_wire_put_number(GByteArray *to, uint32_t number, uint64_t value);
void orr_wire_put_bytes(GByteArray *to, uint32_t number, const void *bytes, gsize length);
void orr_wire_put_text(GByteArray *to, uint32_t number, const char *text);

#endif
