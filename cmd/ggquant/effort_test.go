package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"ggforge/gguf"
	"ggforge/internal/kernel/cpu"
	"ggforge/model"
	"ggforge/quantize"
	"ggforge/quantize/calibrate"
	"ggforge/test/hftest"
)

// TestEffort checks that choosing blocks changes nothing else: types, sizes, bytes of other tensors and metadata
// stay, except the keys that record the calibration; that the bytes depend on neither the number of workers nor the
// other outputs; and that errors decrease.
func TestEffort(t *testing.T) {
	if !cpu.HasVectors || testing.Short() {
		t.Skip("takes long without vector kernels; it tests no kernel")
	}
	gollama := "../../test/testdata/gollama"
	mixtral, err := hftest.Lookup("mixtral").Write(t.TempDir(), hftest.Variant{Seed: 1, DType: "BF16"})
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../quants/quants.go")
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir() + "/"
	text := out + "text.txt"
	if err := os.WriteFile(text, source[:1000], 0o666); err != nil {
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
	open := func(path string) *model.Model {
		t.Helper()
		m, err := model.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	for _, c := range []struct {
		effort, in, typ string
		most            float64 // limit of each tensor's error
		few             string  // --tensor-type rule; the first one leaves few tensors to calibrate
	}{{"high", gollama, "Q2_K", 0.6, "(token_embd|blk.([1-5].|.*(ffn|attn_q|output)))=f16"},
		{"high", mixtral, "Q4_0", 0.95, "nothing=f16"}, {"best", mixtral, "Q4_0", 0.95, "nothing=f16"}} {
		flags := []string{"--calibrate", text, "-c", "32", "--chunks", "2", "--tensor-type", c.few}
		run(append(flags, c.in, out+"matrix.gguf", c.typ)...)
		var report quantize.Report
		if err := json.Unmarshal([]byte(run(append(flags, "--effort", c.effort, "--json", "-t", "1", c.in,
			out+"high.gguf", c.typ)...)), &report); err != nil {
			t.Fatal(err)
		}
		run(append(flags, "--effort", c.effort, "-t", "3", "--out-dir", out+"all", "--name-template", "{FTYPE}.gguf",
			c.in, "Q4_1", c.typ)...)
		one, err := os.ReadFile(out + "high.gguf")
		if err != nil {
			t.Fatal(err)
		}
		other, err := os.ReadFile(out + "all/" + c.typ + ".gguf")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, other) {
			t.Errorf("%s: other bytes with more workers and outputs", c.in)
		}
		a, b := open(out+"matrix.gguf"), open(out+"high.gguf")
		var keys gguf.Metadata
		for _, kv := range b.Metadata {
			if !strings.HasPrefix(kv.Key, "quantize.calibration.") {
				keys = append(keys, kv)
			}
		}
		if len(b.Metadata)-len(keys) != 4 || !slices.EqualFunc(keys, a.Metadata,
			func(x, y gguf.KV) bool { return x.Key == y.Key && x.Value.Short() == y.Value.Short() }) {
			t.Errorf("%s: metadata %v, want %v", c.in, b.Metadata, a.Metadata)
		}
		if method, _ := b.Metadata.Get("quantize.calibration.method"); strings.Contains(method.String(),
			"gradients at outputs, tensor after tensor: moved targets") != (c.effort == "best") ||
			strings.Contains(method.String(), "embedding: gradients") != (c.in == mixtral) {
			t.Errorf("%s, %s: method %v", c.in, c.effort, method)
		}
		if len(a.Tensors) != len(b.Tensors) || len(a.Tensors) != len(report.Tensors) {
			t.Fatalf("%s: %d tensors, want %d", c.in, len(b.Tensors), len(a.Tensors))
		}
		changed := 0
		for i := range a.Tensors {
			x, y, r := &a.Tensors[i], &b.Tensors[i], &report.Tensors[i]
			if x.Name != y.Name || x.Type != y.Type || r.Name != x.Name {
				t.Fatalf("%s: tensor %s of %v, want %s of %v", c.in, y.Name, y.Type, x.Name, x.Type)
			}
			n := gguf.Rows(x.NE)
			before, err := x.Source.Raw(new([]byte), 0, n)
			if err != nil {
				t.Fatal(err)
			}
			after, err := y.Source.Raw(new([]byte), 0, n)
			if err != nil {
				t.Fatal(err)
			}
			chosen := calibrate.Supported(x.Type) && x.Type.String() == r.Type && r.FromType != r.Type
			if (r.Calibration != nil) != chosen {
				t.Errorf("%s, %s %s: %+v", c.in, x.Name, x.Type, r.Calibration)
			}
			if chosen {
				changed++
				most := c.most
				if x.Name == "token_embd.weight" { // the reference's search already minimizes this error
					most = 0.98
				}
				if r.Calibration.Gradients != (x.Name == "token_embd.weight") {
					t.Errorf("%s, effort %s, %s: gradients %v", c.in, c.effort, x.Name, r.Calibration.Gradients)
				}
				if ratio := r.Calibration.TraceRatio; (ratio > 0) != (x.Name != "token_embd.weight") || ratio >= 1 {
					t.Errorf("%s, %s: tr(D)/tr(H) is %v", c.in, x.Name, ratio)
				}
				if k := r.Calibration; !(k.After < most*k.Before) {
					t.Errorf("%s, %s: error %v, was %v", c.in, x.Name, k.After, k.Before)
				}
			}
			if bytes.Equal(before, after) == chosen {
				t.Errorf("%s, %s: the same bytes: %v", c.in, x.Name, !chosen)
			}
		}
		if changed == 0 {
			t.Errorf("%s: nothing was chosen", c.in)
		}
	}
	if left, err := os.ReadDir(out); err != nil || len(left) != 4 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	for args, want := range map[string]string{
		"--effort high IN OUT Q4_K_M":               "--effort goes with one of --calibrate, --hessian",
		"--calibrate t --effort most IN OUT Q4_K_M": `--effort is "most"`,
	} {
		if code, _, err := call(strings.Fields(args)...); code != 2 || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: exit code %d, %v, want %s", args, code, err, want)
		}
	}
}
