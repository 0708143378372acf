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
	"runtime"
	"strconv"
	"strings"

	"ggforge/gguf"
	"ggforge/test/gen"
)

// countRows are the rows of which instructions are counted: the count is exact, and more of them change the
// third digit at most.
const countRows = 2

// The plugin counts from the call of startCount to that of stopCount.
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

// emulated is this program, built for a machine, and the emulator that runs it.
type emulated struct {
	arch, program string
	qemu          []string
	bits          int // of vectors
	// goes before bits in GODEBUG: "+" selects a width although QEMU lacks CPU features that package simd asks for
	force string
}

// version returns the first line of QEMU's --version.
func (m emulated) version(ctx context.Context) (string, error) {
	version, err := exec.CommandContext(ctx, m.qemu[0], "--version").Output()
	first, _, _ := strings.Cut(string(version), "\n")
	return first, err
}

// startCounter starts the program as a server with vectors or, if scalar, with the scalar kernels.
func startCounter(ctx context.Context, opt *options, dir workDir, m emulated, scalar bool) (c *counter, err error) {
	bits, setting := m.bits, fmt.Sprintf("simd=%s%d", m.force, m.bits)
	if scalar {
		bits, setting = 0, "simd=0"
	}
	at := map[string]uint64{"main.startCount": 0, "main.stopCount": 0}
	f, err := elf.Open(m.program)
	if err != nil {
		return nil, err
	}
	symbols, err := f.Symbols()
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.program, err)
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
	name := dir.path(fmt.Sprintf("counts-%s-%d", m.arch, bits))
	if c.file, err = os.Create(name); err != nil {
		return nil, err
	}
	c.counts = bufio.NewReader(c.file)
	args := append(m.qemu[1:len(m.qemu):len(m.qemu)],
		"-plugin", fmt.Sprintf("%s,start=%#x,stop=%#x,out=%s", plugin, at["main.startCount"], at["main.stopCount"],
			name), m.program, serverArg)
	cmd := exec.CommandContext(ctx, m.qemu[0], args...)
	// Nothing but the kernels runs in their thread.
	cmd.Env = append(os.Environ(), "GODEBUG="+setting+",asyncpreemptoff=1", "GOGC=off", "GOMAXPROCS=1")
	if c.client, err = start(m.arch+" "+widthName(bits), cmd); err != nil {
		return c, err
	}
	a, err := c.ask(request{Op: "load", Input: dir.path("x.f32"), Weights: dir.path("w.f32"), RowLen: kernelCols})
	if err == nil && a.Width != bits {
		err = fmt.Errorf("vectors of %d bits, want %d", a.Width, bits)
	}
	if err != nil {
		err = fmt.Errorf("%w %s", err, c.errors.Bytes())
	}
	return c, err
}

func (c *counter) close() {
	if c.client != nil {
		c.client.close()
	}
	c.file.Close()
}

// perWeight sends a request three times and returns the least count of instructions, divided by n elements: counts that
// are higher by a thousand include Go's scheduler.
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

// benchInstructions counts instructions instead of measuring time, since there may be no machine of that kind.
func benchInstructions(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	if opt.arm64 == "" || opt.plugin == "" {
		return errors.New("instructions: want -arm64 and -plugin (make instructions)")
	}
	x, _ := gen.Input(fmt.Sprintf("normal/%dx%d", countRows, kernelCols))
	if err := os.WriteFile(dir.path("x.f32"), bytesOf(x), 0o666); err != nil {
		return err
	}
	if err := os.WriteFile(dir.path("w.f32"), bytesOf(gen.Importance("uni", kernelCols)), 0o666); err != nil {
		return err
	}
	if err := countArm64(ctx, w, opt, dir); err != nil {
		return err
	}
	if runtime.GOARCH != "amd64" {
		return nil
	}
	return countHere(ctx, w, opt, dir)
}

// startCounters starts the two servers of a machine: scalar, and with vectors. version is that of the emulator.
func startCounters(ctx context.Context, opt *options, dir workDir, m emulated) (servers [2]*counter, version string,
	stop func(), err error) {
	if version, err = m.version(ctx); err != nil {
		return servers, "", nil, err
	}
	stop = func() {
		for _, c := range servers {
			if c != nil {
				c.close()
			}
		}
	}
	for i := range servers {
		if servers[i], err = startCounter(ctx, opt, dir, m, i == 0); err != nil {
			stop()
			return servers, "", nil, err
		}
	}
	return servers, version, stop, nil
}

// countBoth returns the instructions for a weight of both servers.
func countBoth(servers [2]*counter, what request) (n [2]float64, err error) {
	for i, c := range servers {
		keep := what
		keep.Op = "encode"
		if _, err := c.ask(keep); err != nil { // makes the blocks to decode, and allocates scratch memory
			return n, fmt.Errorf("%w %s", err, c.errors.Bytes())
		}
		if n[i], err = c.perWeight(what, countRows*kernelCols); err != nil {
			return n, err
		}
	}
	return n, nil
}

func countArm64(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	m := emulated{arch: "arm64", program: opt.arm64, qemu: []string{"qemu-aarch64"}, bits: 128}
	servers, version, stop, err := startCounters(ctx, opt, dir, m)
	if err != nil {
		return err
	}
	defer stop()
	fmt.Fprintf(w, "## Instructions on arm64\n\n"+
		"How many instructions of arm64 a weight takes, in scalar code and with vectors of 128 bits: %d rows of %d gaussian\n"+
		"weights, counted by a plugin of %s\n"+
		"(`make instructions`), the least of three counts. They are exact and the same on every machine, but say "+
		"nothing of time:\n"+
		"an instruction on a vector may take longer than one on a number. imatrix: encoding with importance, where "+
		"it changes the\n"+
		"result. check: looking for elements that are not finite.\n\n", countRows, kernelCols, version)
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
			n, err := countBoth(servers, what)
			if err != nil {
				return err
			}
			cells = append(cells, number(n[0]), number(n[1]), ratio(n[0], n[1]))
		}
		progress("%s", strings.Join(cells, "  "))
		t.add(cells...)
	}
	t.write(w)
	return nil
}

// countHere counts the instructions of encoders of 256 bits, and how many of them a cycle of this machine does.
func countHere(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	m := emulated{arch: "amd64", program: exe, qemu: []string{"qemu-x86_64", "-cpu", "max"}, bits: 256, force: "+"}
	servers, version, stop, err := startCounters(ctx, opt, dir, m)
	if err != nil {
		return err
	}
	defer stop()
	b := &kernelBench{opt: opt}
	defer b.close()
	here, err := startServer(ctx, "256", 256)
	if err != nil {
		return err
	}
	b.ours = []*client{here}
	// Times are measured with more rows: branch predictors learn all branches of a few rows.
	x, _ := gen.Input(fmt.Sprintf("normal/%dx%d", kernelRows, kernelCols))
	if err := os.WriteFile(dir.path("times.f32"), bytesOf(x), 0o666); err != nil {
		return err
	}
	load := request{Op: "load", Input: dir.path("times.f32"), Weights: dir.path("w.f32"), RowLen: kernelCols}
	if a, err := here.ask(load); err != nil || a.Width != 256 {
		progress("instructions on amd64: no vectors of 256 bits here: left out (%v)", err)
		return nil
	}
	all := []*contender{{client: here}}
	if opt.root != "" {
		if b.reference, err = startReference(ctx, dir); err != nil {
			return err
		}
		load.Input, load.Weights = dir.inside("times.f32"), dir.inside("w.f32")
		if _, err = b.reference.ask(load); err != nil {
			return fmt.Errorf("%w %s", err, b.reference.errors.Bytes())
		}
		all = append(all, &contender{client: b.reference})
	}
	// The loops first, then encoders; n are the instructions.
	list := []*timed{{r: request{Op: "chain"}, all: again(all[:1])}, {r: request{Op: "spin"}, all: again(all[:1])}}
	counts := [][2]float64{{}, {}}
	for _, typ := range opt.types {
		cases := countCases(servers[0].client, typ)
		for _, what := range cases[:2] {
			if what.Op == "" {
				continue
			}
			n, err := countBoth(servers, what)
			if err != nil {
				return err
			}
			counts = append(counts, n)
			list = append(list, &timed{kernelCase{typ, what.Importance}, what, again(all), false})
		}
	}
	if err := b.measure(ctx, list); err != nil {
		return err
	}
	// seconds are those for an element, or for a pass of a loop.
	seconds := func(c *contender) float64 { return 4 / c.speed() }
	hertz := chainCycles / seconds(list[0].all[0])
	spin := seconds(list[1].all[0])
	perPass, err := servers[0].perWeight(request{Op: "spin", Rows: countRows}, countRows*kernelCols)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "## Instructions on amd64\n\n"+
		"How many instructions a weight takes to encode, in scalar code and with vectors of 256 bits, counted by a plugin of\n"+
		"%s (`make instructions`), and how many of them this machine does\n"+
		"in a cycle, in %d rounds as above, of %s GHz, by a chain of multiplications of %d cycles each. A loop of %d "+
		"additions and\n"+
		"exclusive ors that wait for nothing does %s instructions in a cycle, for comparison.", version, opt.rounds,
		number(hertz/1e9), chainCycles, spinSteps, number(perPass/(spin*hertz)))
	t := table{left: 2, head: []string{"type", "imatrix", "scalar", "256", "x", "cycles", "in a cycle"}}
	if b.reference != nil {
		fmt.Fprintf(w, " reference:\n"+
			"the cycles of libggml. faster: how many times as many these are. wanted: what would have to be done in "+
			"a cycle to be %d times\n"+
			"as fast, %d times for K-quants.", floorOf(gguf.TypeIQ3_S), floorOf(gguf.TypeQ4_K))
		t.head = append(t.head, "reference", "faster", "wanted")
	}
	fmt.Fprintf(w, "\n\n")
	for i, m := range list[2:] {
		n, cycles := counts[2+i], seconds(m.all[0])*hertz
		imatrix := dash
		if m.importance {
			imatrix = "yes"
		}
		cells := []string{m.typ.String(), imatrix, number(n[0]), number(n[1]), ratio(n[0], n[1]), number(cycles),
			number(n[1] / cycles)}
		if b.reference != nil {
			theirs := seconds(m.all[1]) * hertz
			cells = append(cells, number(theirs), ratio(theirs, cycles), number(n[1]*float64(floorOf(m.typ))/theirs))
		}
		t.add(cells...)
	}
	t.write(w)
	if b.differ != nil {
		return fmt.Errorf("instructions: %w: %v", errBytes, b.differ)
	}
	return nil
}

// floorOf returns how many times as fast as the reference an encoder of 256 bits is meant to be.
func floorOf(t gguf.Type) int {
	if strings.HasSuffix(t.String(), "_K") {
		return 8
	}
	return 6
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
