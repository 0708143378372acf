// Count is a plugin of QEMU's user mode. It counts the instructions that one thread executes from the
// instruction at address start to that at address stop, and writes each count as a line to the file out:
//
//	qemu-aarch64 -plugin count.so,start=0x...,stop=0x...,out=FILE PROGRAM
//
// All instructions of a block of translated code count when it is entered. This is exact: start and stop are entries of
// functions, where blocks begin, and a block ends early only at a fault, which measured code does not have.
//
// The functions of the interface are declared here, since distributions do not install qemu-plugin.h with QEMU.
// VERSION is that of the interface, 1 up to QEMU 8.1; the error message of a later QEMU names the versions that it accepts.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 1
#endif

struct qemu_plugin_tb;
struct qemu_plugin_insn;
typedef void translated(uint64_t id, struct qemu_plugin_tb *tb);
typedef void executed(unsigned int cpu, void *data);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated *f);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, executed *f, int flags, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, executed *f, int flags, void *data);

__attribute__((visibility("default"))) int qemu_plugin_version = VERSION;

enum { no_registers = 0, threads = 4096 };

static uint64_t start, stop, counts[threads];
static FILE *out;

static void count(unsigned int cpu, void *n) { counts[cpu % threads] += (uintptr_t)n; }

static void reset(unsigned int cpu, void *data) { counts[cpu % threads] = 0; }

static void report(unsigned int cpu, void *data) {
  fprintf(out, "%" PRIu64 "\n", counts[cpu % threads]);
  fflush(out);
}

static void translate(uint64_t id, struct qemu_plugin_tb *tb) {
  size_t n = qemu_plugin_tb_n_insns(tb);
  qemu_plugin_register_vcpu_tb_exec_cb(tb, count, no_registers, (void *)n);
  for (size_t i = 0; i < n; i++) {
    struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
    uint64_t at = qemu_plugin_insn_vaddr(insn);
    if (at == start)
      qemu_plugin_register_vcpu_insn_exec_cb(insn, reset, no_registers, NULL);
    if (at == stop)
      qemu_plugin_register_vcpu_insn_exec_cb(insn, report, no_registers, NULL);
  }
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
  for (int i = 0; i < argc; i++) {
    if (strncmp(argv[i], "start=", 6) == 0)
      start = strtoull(argv[i] + 6, NULL, 0);
    else if (strncmp(argv[i], "stop=", 5) == 0)
      stop = strtoull(argv[i] + 5, NULL, 0);
    else if (strncmp(argv[i], "out=", 4) == 0)
      out = fopen(argv[i] + 4, "w");
  }
  if (start == 0 || stop == 0 || out == NULL) {
    fprintf(stderr, "count: want start=ADDRESS, stop=ADDRESS and out=FILE\n");
    return 1;
  }
  qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
  return 0;
}
