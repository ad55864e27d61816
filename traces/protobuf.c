#include "traces/protobuf.h"

#include <string.h>

static bool varint(OrrWire *w, uint64_t *value) {
    *value = 0;
    for (guint shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        uint8_t byte = *w->at++;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

static bool take(OrrWire *w, uint64_t length, OrrWire *part) {
    if (length > (uint64_t)(w->end - w->at))
        return false;
    *part = (OrrWire){w->at, w->at + length};
    w->at += length;
    return true;
}

bool orr_wire_message(OrrWire *stream, OrrWire *message, bool *is_sound) {
    uint64_t length;
    *is_sound = true;
    if (stream->at == stream->end)
        return false;
    return *is_sound = varint(stream, &length) && take(stream, length, message);
}

static uint64_t little_endian(OrrWire part) {
    uint64_t value = 0;
    for (guint i = 0; part.at + i < part.end; i++)
        value |= (uint64_t)part.at[i] << (8 * i);
    return value;
}

bool orr_wire_field(OrrWire *message, OrrWireField *field, bool *is_sound) {
    uint64_t key, length;
    OrrWire part;
    *is_sound = true;
    if (message->at == message->end)
        return false;
    *is_sound = false;
    if (!varint(message, &key) || key >> 3 == 0 || key >> 3 > UINT32_MAX)
        return false;
    *field = (OrrWireField){.number = (uint32_t)(key >> 3), .type = key & 7};
    if (field->type == 0)
        return *is_sound = varint(message, &field->value);
    if (field->type == 2)
        return *is_sound = varint(message, &length) && take(message, length, &field->bytes);
    if (field->type != 1 && field->type != 5)
        return false;
    if (!take(message, field->type == 1 ? 8 : 4, &part))
        return false;
    field->value = little_endian(part);
    return *is_sound = true;
}

bool orr_wire_numbers(const OrrWireField *field, GArray *to) {
    uint64_t value = field->value;
    OrrWire packed = field->bytes;
    if (field->type != 2) {
        g_array_append_val(to, value);
        return true;
    }
    while (packed.at < packed.end) {
        if (!varint(&packed, &value))
            return false;
        g_array_append_val(to, value);
    }
    return true;
}

void orr_wire_put_varint(GByteArray *to, uint64_t value) {
    uint8_t bytes[10];
    guint n = 0;
    for (; value >= 128; value >>= 7)
        bytes[n++] = (uint8_t)(value | 128);
    bytes[n++] = (uint8_t)value;
    g_byte_array_append(to, bytes, n);
}

void orr_wire_put_number(GByteArray *to, uint32_t number, uint64_t value) {
    orr_wire_put_varint(to, (uint64_t)number << 3);
    orr_wire_put_varint(to, value);
}

void orr_wire_put_bytes(GByteArray *to, uint32_t number, const void *bytes, gsize length) {
    orr_wire_put_varint(to, (uint64_t)number << 3 | 2);
    orr_wire_put_varint(to, length);
    g_byte_array_append(to, bytes, (guint)length);
}

void orr_wire_put_text(GByteArray *to, uint32_t number, const char *text) {
    orr_wire_put_bytes(to, number, text, strlen(text));
}
