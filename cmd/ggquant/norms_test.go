package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	tool "ggforge/cmd/internal/cli"
	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/test/hftest"
)

// TestTuneNorms checks that --tune-norms changes nothing but norms and the key that records it, that its bytes depend
// on neither workers nor other outputs, and that flags and models that do not fit are refused.
func TestTuneNorms(t *testing.T) {
	if !cpu.HasVectors || testing.Short() {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	out := t.TempDir() + "/"
	gollama := "../../test/testdata/gollama"
	source, err := os.ReadFile("../../quants/quants.go")
	if err != nil {
		t.Fatal(err)
	}
	text := out + "text.txt"
	// Its chunks are alike: what is learned from some holds for those apart.
	if err := os.WriteFile(text, bytes.Repeat(source[500:600], 3), 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		_, stdout, err := call(append(args, "--progress", "none", "--force")...)
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, stdout)
		}
		return stdout[max(0, strings.IndexByte(stdout, '{')):] // after warnings
	}
	flags := []string{"--calibrate", text, "-c", "16", "--chunks", "6", "--effort", "high",
		"--tensor-type", "(token_embd|output|blk.([1-5].|.*(attn_q|output)))=f16"}
	flags = slices.Clip(flags)
	run(append(flags, gollama, out+"plain.gguf", "Q2_K")...)
	var report quantize.Report
	if err := json.Unmarshal([]byte(run(append(flags, "--tune-norms", "--json", "-t", "1", gollama, out+"tuned.gguf",
		"Q2_K")...)), &report); err != nil {
		t.Fatal(err)
	}
	n := report.Norms
	if n == nil || n.Step == 0 || !(n.After < n.Before) || n.Tensors != 13 || n.Tokens != 16 {
		t.Fatalf("norms: %+v", n)
	}
	run(append(flags, "--tune-norms", "-t", "3", "--out-dir", out+"all", "--name-template", "{FTYPE}.gguf", gollama,
		"Q4_0", "Q2_K")...)
	read := func(path string) []byte {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	if !bytes.Equal(read(out+"tuned.gguf"), read(out+"all/Q2_K.gguf")) {
		t.Error("other bytes with more workers and outputs")
	}
	var models [2]*model.Model
	for i, name := range []string{"plain", "tuned"} {
		m, err := model.Open(out + name + ".gguf")
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		models[i] = m
	}
	if v, ok := models[1].Metadata.Get("quantize.calibration.norms"); !ok ||
		len(models[1].Metadata) != len(models[0].Metadata)+1 {
		t.Errorf("%d keys, want one more than %d; norms: %v", len(models[1].Metadata), len(models[0].Metadata), v)
	}
	for i := range models[0].Tensors {
		a, b := &models[0].Tensors[i], &models[1].Tensors[i]
		if a.Name != b.Name || a.Type != b.Type {
			t.Fatalf("%s %v, want %s %v", b.Name, b.Type, a.Name, a.Type)
		}
		x, err := a.Source.Raw(new([]byte), 0, gguf.Rows(a.NE))
		if err != nil {
			t.Fatal(err)
		}
		y, err := b.Source.Raw(new([]byte), 0, gguf.Rows(b.NE))
		if err != nil {
			t.Fatal(err)
		}
		norm := strings.HasSuffix(a.Name, "norm.weight")
		if bytes.Equal(x, y) == norm {
			t.Errorf("%s: the same bytes: %v", a.Name, !norm)
		}
		if tuned := strings.HasSuffix(report.Tensors[i].Reason, ", tuned"); tuned != norm {
			t.Errorf("%s: %s", a.Name, report.Tensors[i].Reason)
		}
	}
	if got := run(append(flags, "--tune-norms", "--dry-run", gollama, out+"x.gguf", "Q2_K")...); !strings.Contains(got,
		"bits per weight") {
		t.Errorf("--dry-run: %s", got)
	}

	// interrupted after some steps
	state := out + "resumed.gguf.partial.norms"
	args := slices.Concat([]string{"ggquant"}, flags, []string{"--tune-norms", "--resume", "--progress", "none", gollama,
		out + "resumed.gguf", "Q2_K"})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(state); err == nil {
				stop()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	cmd := command()
	cmd.Writer, cmd.ErrWriter = new(bytes.Buffer), new(bytes.Buffer)
	err = tool.Run(ctx, cmd, args)
	stop()
	if _, e := os.Stat(state); tool.Code(err) != 130 || e != nil {
		t.Fatalf("not interrupted: %v; the state: %v", err, e)
	}
	run(args[1:]...)
	if !bytes.Equal(read(out+"tuned.gguf"), read(out+"resumed.gguf")) {
		t.Error("other bytes after an interruption")
	}

	rwkv, err := hftest.Lookup("rwkv6").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	high := "--calibrate " + text + " -c 32 --tune-norms --effort high "
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"--tune-norms IN OUT Q2_K", 2, "--tune-norms goes with --calibrate"},
		{"--calibrate t --tune-norms IN OUT Q2_K", 2, "--tune-norms goes with --effort high or best"},
		{"--hessian h --effort high --tune-norms IN OUT Q2_K", 2, "--tune-norms goes with --calibrate"},
		{"--calibrate t --effort high --tune-norms --part 1/2 IN OUT Q2_K", 2, "--calibrate runs the model"},
		{high + "--chunks 1 " + gollama + " " + out + "x.gguf Q2_K", 5, "needs two or more"},
		{high + rwkv + " " + out + "x.gguf Q4_0", 4, "no backward pass"},
	} {
		if code, _, err := call(append(strings.Fields(c.args), "--progress", "none")...); code != c.code ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: exit code %d, %v, want %d with %s", c.args, code, err, c.code, c.want)
		}
	}
	if _, err := os.Stat(out + "x.gguf"); err == nil {
		t.Error("there is an output after an error")
	}
	if left, err := os.ReadDir(out); err != nil || len(left) != 5 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}
