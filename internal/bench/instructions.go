package main

import (
	"bufio"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"ggforge/gguf"
	"ggforge/internal/gen"
)

// countRows are the rows of which instructions are counted: the count is exact, and more of them change the
// third digit at most.
const countRows = 2

// startCount and stopCount are where the plugin begins and ends to count.
//
//go:noinline
func startCount() {}

//go:noinline
func stopCount() {}

// counter is a server under QEMU, whose instructions are counted.
type counter struct {
	*client
	counts *bufio.Reader // a line for each request that runs kernels
	file   *os.File
}

// startCounter starts the program for arm64 as a server whose vectors have that many bits, 0 for the scalar kernels.
func startCounter(ctx context.Context, opt *options, dir workDir, bits int) (c *counter, err error) {
	at := map[string]uint64{"main.startCount": 0, "main.stopCount": 0}
	f, err := elf.Open(opt.arm64)
	if err != nil {
		return nil, err
	}
	symbols, err := f.Symbols()
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", opt.arm64, err)
	}
	for _, s := range symbols {
		if _, ok := at[s.Name]; ok {
			at[s.Name] = s.Value
		}
	}
	plugin, err := filepath.Abs(opt.plugin)
	if err != nil {
		return nil, err
	}
	c = new(counter)
	name := dir.path(fmt.Sprintf("counts-%d", bits))
	if c.file, err = os.Create(name); err != nil {
		return nil, err
	}
	c.counts = bufio.NewReader(c.file)
	cmd := exec.CommandContext(ctx, "qemu-aarch64",
		"-plugin", fmt.Sprintf("%s,start=%#x,stop=%#x,out=%s", plugin, at["main.startCount"], at["main.stopCount"], name), opt.arm64, serverArg)
	// Nothing but the kernels runs in their thread.
	cmd.Env = append(os.Environ(), fmt.Sprintf("GODEBUG=simd=%d,asyncpreemptoff=1", bits), "GOGC=off", "GOMAXPROCS=1")
	c.client, err = start("arm64 "+widthName(bits), cmd)
	return c, err
}

func (c *counter) close() {
	if c.client != nil {
		c.client.close()
	}
	c.file.Close()
}

// perWeight answers a request three times and returns the instructions for each of n elements, the least: those that take
// a thousand more have met the scheduler of Go's runtime.
func (c *counter) perWeight(r request, n int) (least float64, err error) {
	for i := range 3 {
		if _, err := c.ask(r); err != nil {
			return 0, err
		}
		line, err := c.counts.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("server %q, %s of type %d: no count: %w", c.name, r.Op, r.ID, err)
		}
		count, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return 0, err
		}
		if v := float64(count) / float64(n); i == 0 || v < least {
			least = v
		}
	}
	return least, nil
}

// benchInstructions counts instead of measuring: there may be no such machine.
func benchInstructions(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	if opt.arm64 == "" || opt.plugin == "" {
		return errors.New("instructions: want -arm64 and -plugin (make instructions)")
	}
	version, err := exec.CommandContext(ctx, "qemu-aarch64", "--version").Output()
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(version), "\n")
	x, _ := gen.Input(fmt.Sprintf("normal/%dx%d", countRows, kernelCols))
	if err := os.WriteFile(dir.path("x.f32"), bytesOf(x), 0o666); err != nil {
		return err
	}
	if err := os.WriteFile(dir.path("w.f32"), bytesOf(gen.Importance("uni", kernelCols)), 0o666); err != nil {
		return err
	}
	var servers [2]*counter
	for i, bits := range []int{0, 128} {
		c, err := startCounter(ctx, opt, dir, bits)
		if err != nil {
			return err
		}
		defer c.close()
		a, err := c.ask(request{Op: "load", Input: dir.path("x.f32"), Weights: dir.path("w.f32"), RowLen: kernelCols})
		if err == nil && a.Width != bits {
			err = fmt.Errorf("vectors of %d bits, want %d", a.Width, bits)
		}
		if err != nil {
			return fmt.Errorf("%w %s", err, c.errors.Bytes())
		}
		servers[i] = c
	}
	fmt.Fprintf(w, "## Instructions on arm64\n\n"+
		"How many instructions of arm64 a weight takes, in scalar code and with vectors of 128 bits: %d rows of %d gaussian\n"+
		"weights, counted by a plugin of %s\n"+
		"(`make instructions`), the least of three counts. They are exact and the same on every machine, but say nothing of time:\n"+
		"an instruction on a vector may take longer than one on a number. imatrix: encoding with importance, where it changes the\n"+
		"result. check: looking for elements that are not finite.\n\n", countRows, kernelCols, first)
	t := table{left: 1, head: []string{"type"}}
	for _, what := range []string{"encode", "imatrix", "decode", "check"} {
		t.head = append(t.head, what, "128", "x")
	}
	for _, typ := range opt.types {
		cells := []string{typ.String()}
		for _, what := range countCases(servers[0].client, typ) {
			if what.Op == "" {
				cells = append(cells, dash, dash, dash)
				continue
			}
			var n [2]float64
			for i, c := range servers {
				keep := what
				keep.Op = "encode"
				if _, err := c.ask(keep); err != nil { // what is decoded, and scratch memory is made
					return fmt.Errorf("%w %s", err, c.errors.Bytes())
				}
				var err error
				if n[i], err = c.perWeight(what, countRows*kernelCols); err != nil {
					return err
				}
			}
			cells = append(cells, number(n[0]), number(n[1]), ratio(n[0], n[1]))
		}
		progress("%s", strings.Join(cells, "  "))
		t.add(cells...)
	}
	t.write(w)
	return nil
}

// countCases returns the requests for the columns of a type, those without Op being left out.
func countCases(c *client, t gguf.Type) (list [4]request) {
	b := kernelBench{ours: []*client{c}}
	cases, err := b.cases(t)
	if err != nil {
		return list
	}
	for _, k := range cases {
		i := 0
		if k.importance {
			i = 1
		}
		list[i] = k.request("quantize")
		list[2] = k.request("dequantize")
	}
	if t.BlockLen() == 1 {
		list[3] = cases[0].request("validate")
	}
	for i := range list {
		list[i].Rows = countRows
	}
	return list
}
