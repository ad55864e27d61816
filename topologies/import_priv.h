/* What the readers of listings share. */
#ifndef TOPOLOGIES_IMPORT_PRIV_H
#define TOPOLOGIES_IMPORT_PRIV_H

#include "topologies/import_topology.h"
#include "topologies/xml.h"

#define ORR_MAX_FOUND 256 /* ours: GPUs or NICs of a node, so that matrices stay small */

OrrFoundNode *orr_topologies__read_nccl(const OrrImport *import, const OrrXml *root,
                                        GError **error);
OrrFoundNode *orr_topologies__read_hwloc(const OrrImport *import, const OrrXml *root,
                                         GError **error);
OrrFoundNode *orr_topologies__read_smi(const OrrImport *import, const char *text, gsize length,
                                       GError **error);
OrrFoundNode *orr_topologies__read_ib(const OrrImport *import, const char *text, gsize length,
                                      GError **error);

/* A node of @n_gpus and @n_nics with everything unknown. */
OrrFoundNode *orr_topologies__found_new(const char *source, uint32_t n_gpus, uint32_t n_nics);
/* A line for stderr; @line 0: of the whole file. */
void orr_topologies__note(const OrrImport *import, uint32_t line, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
/* Bytes a second of a PCIe link, per direction: "32.0 GT/s PCIe" and lanes; 0: not known. */
double orr_topologies__pcie_rate(const char *speed, double lanes);

/* What a PCI device is. Source: the PCI ID database (pci-ids.ucw.cz). */
typedef struct {
    const char *id, *name;
    const char *file;  /* of topologies/gpus; NULL: none */
    double gbit_per_s; /* of a NIC; 0: no NIC */
} OrrPciDevice;
/* NULL if @id ("10de:2330") is none that we know. */
const OrrPciDevice *orr_topologies__pci_device(const char *id);

#endif
