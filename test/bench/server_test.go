package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ggforge/gguf"
	"ggforge/test/gen"
)

// The test program can be a server too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == serverArg {
		if serve(os.Stdin, os.Stdout) != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// input writes an input and its weights, and returns the request to load them.
func input(t *testing.T) request {
	x, n := gen.Input("normal/3x512")
	r := request{Op: "load", Input: filepath.Join(t.TempDir(), "x"),
		Weights: filepath.Join(t.TempDir(), "w"), RowLen: n}
	for path, v := range map[string][]float32{r.Input: x, r.Weights: gen.Importance("uni", n)} {
		if err := os.WriteFile(path, bytesOf(v), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestServer(t *testing.T) {
	c, err := startServer(t.Context(), "scalar", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	ask := func(r request) answer {
		t.Helper()
		a, err := c.ask(r)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := ask(input(t)); a.Width != 0 {
		t.Errorf("width %d, want 0", a.Width)
	}
	k := kernelCase{gguf.TypeQ4_K, false}
	r := k.request("encode")
	plain := ask(r)
	if plain.Implementation != "scalar" || len(plain.Sum) != 64 || len(plain.Decoded) != 64 || plain.RMSE < 0.05 ||
		plain.RMSE > 0.1 {
		t.Errorf("encode: %+v", plain)
	}
	r.Importance = true
	if a := ask(r); a.Sum == plain.Sum {
		t.Error("importance changes nothing")
	}
	for _, op := range []string{"quantize", "dequantize"} {
		r.Op, r.Rows = op, 7 // more than the input has
		if a := ask(r); a.Seconds <= 0 {
			t.Errorf("%s: %+v", op, a)
		}
		if n, err := c.calibrate(r, time.Millisecond); err != nil || n < 1 {
			t.Errorf("%s: %d rows, %v", op, n, err)
		}
	}
	for _, bad := range []request{
		{Op: "fly"},
		{Op: "load", Input: "/nonexistent"},
		{Op: "encode", ID: 9999},
		{Op: "encode", ID: int(gguf.TypeQ8_1)},
		{Op: "quantize", ID: int(gguf.TypeQ6_K), Rows: 1}, // not what was encoded
	} {
		if a, err := c.ask(bad); err == nil {
			t.Errorf("%+v: %+v, want an error", bad, a)
		}
	}
}

// The whole bench without the reference, for one type.
func TestBenchKernels(t *testing.T) {
	opt := &options{types: []gguf.Type{gguf.TypeQ4_0, gguf.TypeQ8_0}, rounds: 1, budget: time.Microsecond,
		tmp: t.TempDir()}
	dir, err := newWorkDir(opt)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := benchKernels(t.Context(), &b, opt, dir); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\n| Q4_0 | -  ", "\n| Q4_0 | yes", "\n| Q8_0 | -  "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "\n| Q8_0 | yes") {
		t.Errorf("Q8_0 with importance in\n%s", b.String())
	}
	if err := dir.remove(); err != nil {
		t.Error(err)
	}
}

// An io.EOF means that the CPU lacks the width.
func TestServerGone(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := start("gone", exec.Command(exe, "-test.run=^$"))
	if err != nil {
		t.Fatal(err)
	}
	c.out.Discard(1 << 20)
	c.cmd.Process.Wait()
	if a, err := c.ask(request{Op: "load"}); !errors.Is(err, io.EOF) {
		t.Errorf("%+v, %v, want io.EOF", a, err)
	}
	c.close()
}

// The reference's server takes the same requests.
func TestRequest(t *testing.T) {
	b, err := json.Marshal(kernelCase{gguf.TypeF32, false}.request("encode"))
	if want := `{"op":"encode","id":0,"row_bytes":16384}`; err != nil || string(b) != want {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
	if err := serve(strings.NewReader("{\n"), io.Discard); err != nil {
		t.Errorf("a broken request ends the server: %v", err)
	}
}
