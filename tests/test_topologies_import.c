/* Listings of machines as clusters: small texts of each kind. */
#include "tests/near.h"

#include <glib/gstdio.h>
#include <string.h>

#include "topologies/import_topology.h"
#include "topologies/loader.h"

static GString *notes;

static int set_up(void **state) {
    (void)state;
    notes = g_string_new(NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    g_string_free(notes, TRUE);
    return 0;
}

static char *read(const char *text, const OrrImport *ask, GError **error) {
    OrrImport import = *ask;
    import.path = "own.xml";
    import.notes = notes;
    g_autoptr(OrrFoundNode) found = orr_topology_find_in(&import, text, strlen(text), error);
    return found ? orr_topology_cluster_text(&import, found, error) : NULL;
}

#define GPU(bus, speed, links)                                                                     \
    "<pci busid=\"" bus "\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" "               \
    "link_speed=\"" speed " GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\">"                         \
    "<nvlink target=\"0000:1c:00.0\" count=\"" links "\" tclass=\"0x068000\"/></gpu></pci>\n"
#define NIC                                                                                        \
    "<pci busid=\"0000:0c:00.0\" class=\"0x020700\" vendor=\"0x15b3\" device=\"0x1021\" "          \
    "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"mlx5_0\" speed=\"400000\"/>" \
    "</nic></pci>\n"
#define SYSTEM(inside) "<system version=\"1\"><cpu numaid=\"0\">\n" inside "</cpu></system>"

static void test_xml_of_nccl_makes_a_cluster_that_loads(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    OrrImport ask = {.n_nodes = 4};
    g_autofree char *text =
        read(SYSTEM(GPU("0000:0f:00.0", "32.0", "18") GPU("0000:10:00.0", "32.0", "18") NIC), &ask,
             &error);
    assert_null(error);
    g_autofree char *path = g_build_filename(g_get_tmp_dir(), "orrery-imported-XXXXXX.ini", NULL);
    int file = g_mkstemp(path);
    assert_true(file >= 0 && g_close(file, NULL));
    assert_true(g_file_set_contents(path, text, -1, NULL));
    OrrCluster *cluster = orr_topology_cluster(path, NULL, &error);
    g_remove(path);
    assert_null(error);
    const OrrClusterSpec *spec = orr_cluster_spec(cluster);
    assert_int_equal(spec->n_gpus, 8);
    assert_int_equal(spec->node->gpus, 2);
    assert_int_equal(spec->node->nvlink, ORR_NVLINK_SWITCH);
    assert_near(spec->node->nic_bytes_per_s, 50e9, 1e-9);
    assert_near(spec->node->nic_pcie_bytes_per_s, 16 * 4e9 * 128 / 130, 1e-6);
    orr_cluster_free(cluster);
}

static void test_slow_slot_is_flagged_and_lowers_the_path(void **state) {
    (void)state;
    OrrImport ask = {0};
    g_autofree char *text = read(
        SYSTEM(GPU("0000:0f:00.0", "8.0", "18") GPU("0000:10:00.0", "32.0", "17") NIC), &ask, NULL);
    assert_non_null(text);
    assert_non_null(strstr(text, "nic_pcie = 15.7538 GB/s"));
    assert_non_null(strstr(notes->str, "own.xml:2: 0000:0f:00.0: PCIe link at 8.0 GT/s"));
    assert_non_null(strstr(notes->str, "0000:10:00.0 has 17 NVLinks, its kind 18"));
}

static void test_entities_are_refused(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    OrrImport ask = {0};
    assert_null(read("<!DOCTYPE s [<!ENTITY a \"b\">]><system>&a;</system>", &ask, &error));
    assert_non_null(strstr(error->message, "declares entities"));
    g_clear_error(&error);
    assert_null(read("<system>&a;</system>", &ask, &error));
    assert_non_null(strstr(error->message, "own.xml:1: not sound XML"));
}

static void test_table_of_smi_tells_switch_from_mesh(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    OrrImport ask = {.gpu = "a100-sxm-80"};
    g_autofree char *mesh = read("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X\n", &ask, &error);
    assert_null(error);
    assert_non_null(strstr(mesh, "mesh = 0 4; 4 0"));
    g_autofree char *through =
        read("\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV12\tNV12\nGPU1\tNV12\t X\tNV12\n"
             "GPU2\tNV12\tNV12\tX\n",
             &ask, &error);
    assert_null(error);
    assert_non_null(strstr(through, "nvlink = switch"));
    assert_null(read("\tGPU0\tGPU1\nGPU0\t X \tNV4\n", &ask, &error));
    assert_non_null(strstr(error->message, "the row of GPU1 is missing"));
    g_clear_error(&error);
    assert_null(read("\tGPU0\tGPU1\nGPU0\t X \tQPI\n", &ask, &error));
    assert_non_null(strstr(error->message, "own.xml:2: GPU0 to GPU1 = QPI"));
}

static void test_ibnetdiscover_gives_rails_and_oversubscription(void **state) {
    (void)state;
    g_autoptr(GError) error = NULL;
    OrrImport ask = {.gpu = "h100"};
    g_autofree char *text = read("switchguid=0xa\nSwitch\t65 \"S-1\" # \"leaf1\"\n"
                                 "[1] \"H-2\"[1](2) # \"node1 mlx5_0\" lid 1 4xNDR\n"
                                 "[2] \"H-3\"[1](3) # \"node2 mlx5_0\" lid 1 4xNDR\n"
                                 "[3] \"S-9\"[1](3) # \"spine\" lid 1 4xNDR\n"
                                 "Switch\t65 \"S-4\" # \"leaf2\"\n"
                                 "[1] \"H-5\"[1](2) # \"node1 mlx5_1\" lid 1 4xNDR\n"
                                 "[2] \"H-6\"[1](3) # \"node2 mlx5_1\" lid 1 4xNDR\n"
                                 "[3] \"S-9\"[1](3) # \"spine\" lid 1 4xNDR\n",
                                 &ask, &error);
    assert_null(error);
    assert_non_null(strstr(text, "gpus = 4 GPUs\nfabric = rail\nnodes_per_leaf = 2 nodes\n"
                                 "leaf_oversubscription = 2\n"));
    assert_non_null(strstr(text, "nics = 2 NICs\nnic = 50 GB/s\nnet = ib"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        T(test_xml_of_nccl_makes_a_cluster_that_loads),
        T(test_slow_slot_is_flagged_and_lowers_the_path),
        T(test_entities_are_refused),
        T(test_table_of_smi_tells_switch_from_mesh),
        T(test_ibnetdiscover_gives_rails_and_oversubscription),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
