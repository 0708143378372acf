package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"ggforge/gguf"
	"ggforge/quants"
	"ggforge/test/gen"
)

const (
	kernelRows = 8 // with kernelCols 128 KiB of float32, which stay in the cache of a core
	kernelCols = 4096
)

// widths are the implementations that are measured: the bits of a vector.
var widths = []int{0, 128, 256, 512}

// kernelCase is one function to measure.
type kernelCase struct {
	typ        gguf.Type
	importance bool
}

// contender is one server in one case.
type contender struct {
	*client
	rows    int       // of a measurement, 0: not measured
	seconds []float64 // of each round
	kept    answer    // of encode
}

// speed returns the speed in float32 bytes a second of the second best round: other work on the machine, or on the
// host of a virtual one, makes rounds slower, for seconds at a time, and a clock that jumps may make one faster.
func (c *contender) speed() float64 {
	if c == nil || len(c.seconds) == 0 {
		return math.NaN()
	}
	return 4 * kernelCols * float64(c.rows) / slices.Sorted(slices.Values(c.seconds))[min(1, len(c.seconds)-1)]
}

// usualSpeed returns the median speed.
func (c *contender) usualSpeed() float64 { return 4 * kernelCols * float64(c.rows) / median(c.seconds) }

// kernelBench holds the servers of one run.
type kernelBench struct {
	opt       *options
	ours      []*client // one for each of widths, nil where untested
	reference *client   // nil without one
	differ    []string  // where bytes are not the same
}

func benchKernels(ctx context.Context, w io.Writer, opt *options, dir workDir) error {
	b := &kernelBench{opt: opt}
	defer b.close()
	notes, err := b.start(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "## Encoders and decoders\n\n"+
		"Rows of %d gaussian weights (standard deviation 0.02), %d rows in turn, on one thread. MB/s counts the float32 side, by\n"+
		"the thread's CPU time; of %d rounds of about %v, all\n"+
		"types and columns in turn in every round, each figure is that of the second best.\n"+
		"Mw/s: millions of weights a second of our fastest. RMSE: root mean square of the error over that of the input. A dash:\n"+
		"the type has no kernel of its own for this width, so the scalar one runs. imatrix: with importance, where "+
		"it changes the\n"+
		"result.", kernelCols, kernelRows, opt.rounds, opt.budget)
	if b.reference != nil {
		fmt.Fprintf(w, " x: ours over the reference's MB/s (the larger, the faster we are). The reference is "+
			"libggml-base itself,\n"+
			"called in its own process.")
	}
	fmt.Fprintf(w, "\n\n%s", notes)

	var list []*timed
	for _, t := range opt.types {
		cases, err := b.cases(t)
		if err != nil {
			return err
		}
		for i, k := range cases {
			all, err := b.prepare(k)
			if err != nil {
				return err
			}
			r := k.request("quantize")
			list = append(list, &timed{k, r, all, true})
			if i == 0 {
				r.Op = "dequantize"
				list = append(list, &timed{k, r, again(all), false})
			}
		}
	}
	if err := b.measure(ctx, list); err != nil {
		return err
	}
	encode := table{left: 2, head: b.head("type", "imatrix", "bpw", "RMSE")}
	decode := table{left: 1, head: b.head("type")}
	for _, m := range list {
		name, imatrix := m.typ.String(), dash
		if m.importance {
			imatrix = "yes"
		}
		if m.distinct {
			encode.add(b.row(m.all, name, imatrix, strconv.FormatFloat(m.typ.BPW(), 'f', 4, 64),
				number(m.all[0].kept.RMSE))...)
		} else {
			decode.add(b.row(m.all, name)...)
		}
	}
	fmt.Fprintf(w, "### Encoding\n\n")
	encode.write(w)
	fmt.Fprintf(w, "### Decoding\n\n")
	decode.write(w)
	zeros, err := b.zeros(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "To store zeros where decoders write, and do nothing else, goes at %s MB/s.\n\n", number(zeros/1e6))
	if b.differ != nil {
		fmt.Fprintf(w, "**Bytes that are not the same:**\n\n")
		for _, d := range b.differ {
			fmt.Fprintf(w, "* %s\n", d)
		}
		fmt.Fprintln(w)
		return fmt.Errorf("kernels: %w", errBytes)
	}
	return nil
}

// start starts the servers and gives them the input. The notes name the widths that
// are not tested.
func (b *kernelBench) start(ctx context.Context, dir workDir) (notes string, err error) {
	x, _ := gen.Input(fmt.Sprintf("normal/%dx%d", kernelRows, kernelCols))
	if err := os.WriteFile(dir.path("x.f32"), bytesOf(x), 0o666); err != nil {
		return "", err
	}
	if err := os.WriteFile(dir.path("w.f32"), bytesOf(gen.Importance("uni", kernelCols)), 0o666); err != nil {
		return "", err
	}
	load := request{Op: "load", Input: dir.path("x.f32"), Weights: dir.path("w.f32"), RowLen: kernelCols}
	for _, bits := range widths {
		c, err := startServer(ctx, widthName(bits), bits)
		if err != nil {
			return "", err
		}
		a, err := c.ask(load)
		if err == nil && a.Width == bits {
			b.ours = append(b.ours, c)
			continue
		}
		c.close()
		if reason, _, _ := strings.Cut(c.errors.String(), "\n"); reason != "" {
			progress("%s: %s", c.name, reason)
		}
		if bits == 0 || err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("%w %s", err, c.errors.Bytes())
		}
		b.ours = append(b.ours, nil)
		why := "the CPU does not have this width"
		if err == nil {
			why = "a build without vector kernels"
		}
		notes += fmt.Sprintf("Width %d is untested: %s.\n", bits, why)
	}
	if notes != "" {
		notes += "\n"
	}
	if b.opt.root == "" {
		return notes, nil
	}
	if b.reference, err = startReference(ctx, dir); err != nil {
		return "", err
	}
	load.Input, load.Weights = dir.inside("x.f32"), dir.inside("w.f32")
	if _, err = b.reference.ask(load); err != nil {
		err = fmt.Errorf("%w %s", err, b.reference.errors.Bytes())
	}
	return notes, err
}

func (b *kernelBench) close() {
	for _, c := range append(b.ours, b.reference) {
		if c != nil {
			c.close()
		}
	}
}

func widthName(bits int) string {
	if bits == 0 {
		return "scalar"
	}
	return strconv.Itoa(bits)
}

func (k kernelCase) request(op string) request {
	return request{Op: op, ID: int(k.typ), RowBytes: int(k.typ.RowBytes(kernelCols)), Importance: k.importance}
}

// cases returns how the type is measured: without importance, if there is such
// an encoder, and with it, if that changes the result.
func (b *kernelBench) cases(t gguf.Type) ([]kernelCase, error) {
	plain, weighted := kernelCase{t, false}, kernelCase{t, true}
	if quants.Lookup(t).NeedsImportance() {
		return []kernelCase{weighted}, nil
	}
	var sums [2]string
	for i, k := range []kernelCase{plain, weighted} {
		a, err := b.ours[0].ask(k.request("encode"))
		if err != nil {
			return nil, err
		}
		sums[i] = a.Sum
	}
	if sums[0] == sums[1] {
		return []kernelCase{plain}, nil
	}
	return []kernelCase{plain, weighted}, nil
}

// prepare has all servers encode the input once and compares what they made. The
// contenders are one for each of widths, nil where untested, and the reference.
func (b *kernelBench) prepare(k kernelCase) ([]*contender, error) {
	var all []*contender
	for _, c := range append(b.ours[:len(b.ours):len(b.ours)], b.reference) {
		if c == nil {
			all = append(all, nil)
			continue
		}
		a, err := c.ask(k.request("encode"))
		if err != nil {
			return nil, err
		}
		all = append(all, &contender{client: c, kept: a})
		first := all[0].kept
		if a.Sum != first.Sum {
			b.differ = append(b.differ, fmt.Sprintf("%v, importance %v: scalar and %s encode differently", k.typ,
				k.importance, c.name))
		} else if a.Decoded != "" && a.Decoded != first.Decoded {
			b.differ = append(b.differ, fmt.Sprintf("%v: scalar and %s decode differently", k.typ, c.name))
		}
	}
	return all, nil
}

// timed is a function to measure: an encoder or decoder, for which the servers encode the input of the case first, or a
// loop.
type timed struct {
	kernelCase
	r        request
	all      []*contender // nil where untested
	distinct bool         // leave out those that would run the scalar encoder again
}

// again returns contenders of the same servers.
func again(all []*contender) []*contender {
	var list []*contender
	for _, c := range all {
		if c != nil {
			c = &contender{client: c.client, kept: c.kept}
		}
		list = append(list, c)
	}
	return list
}

// measure lets the contenders take turns, in rounds over all of the list, so that a slow period of the machine does
// not affect one type alone.
func (b *kernelBench) measure(ctx context.Context, list []*timed) error {
	for n := range b.opt.rounds {
		for i, m := range list {
			if m.r.RowBytes > 0 && (i == 0 || list[i-1].r.RowBytes == 0 || list[i-1].kernelCase != m.kernelCase) {
				if _, err := b.prepare(m.kernelCase); err != nil {
					return err
				}
			}
			if n == 0 {
				if err := b.calibrate(m); err != nil {
					return err
				}
			}
			for _, c := range m.all {
				if c == nil || c.rows == 0 {
					continue
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				r := m.r
				r.Rows = c.rows
				a, err := c.ask(r)
				if err != nil {
					return err
				}
				c.seconds = append(c.seconds, a.Seconds)
			}
			if n == b.opt.rounds-1 {
				m.progress()
			}
		}
	}
	return nil
}

// calibrate sets the rows of all contenders that are measured.
func (b *kernelBench) calibrate(m *timed) (err error) {
	for i, c := range m.all {
		if c == nil || m.distinct && i > 0 && c.client != b.reference &&
			c.kept.Implementation == m.all[0].kept.Implementation ||
			c.client == b.reference && m.r.Op == "dequantize" && c.kept.Decoded == "" {
			continue
		}
		if c.rows, err = c.client.calibrate(m.r, b.opt.budget); err != nil {
			return err
		}
	}
	return nil
}

func (m *timed) progress() {
	line := fmt.Sprintf("%s %v", m.r.Op, m.typ)
	if m.importance {
		line += " imatrix"
	}
	for _, c := range m.all {
		if c != nil && c.rows > 0 {
			line += fmt.Sprintf("  %s %s", c.name, number(c.speed()/1e6))
		}
	}
	progress("%s", line)
}

// zeros returns how many bytes a second are stored where our decoders write.
func (b *kernelBench) zeros(ctx context.Context) (float64, error) {
	c := &contender{client: b.ours[0]}
	err := b.measure(ctx, []*timed{{r: request{Op: "zeros"}, all: []*contender{c}}})
	return c.speed(), err
}

// head returns the head of a table that begins with those columns.
func (b *kernelBench) head(first ...string) []string {
	for _, bits := range widths {
		first = append(first, widthName(bits)+" MB/s")
	}
	first = append(first, "Mw/s")
	if b.reference == nil {
		return first
	}
	first = append(first, "reference MB/s")
	for _, bits := range widths {
		first = append(first, widthName(bits)+" x")
	}
	return append(first, "bytes")
}

// row returns a row of such a table.
func (b *kernelBench) row(all []*contender, first ...string) []string {
	ours, reference := all[:len(widths)], all[len(widths)]
	fastest := 0.0
	cell := func(c *contender, text func(speed float64) string) string {
		switch {
		case c == nil:
			return "untested"
		case c.rows == 0:
			return dash
		}
		return text(c.speed())
	}
	for _, c := range ours {
		first = append(first, cell(c, func(v float64) string {
			fastest = max(fastest, v)
			return number(v / 1e6)
		}))
	}
	first = append(first, number(fastest/4e6))
	if reference == nil {
		return first
	}
	first = append(first, cell(reference, func(v float64) string { return number(v / 1e6) }))
	for _, c := range ours {
		first = append(first, cell(c, func(v float64) string {
			if reference.rows == 0 {
				return dash
			}
			return ratio(v, reference.speed())
		}))
	}
	same := "same"
	if reference.kept.Sum != ours[0].kept.Sum || reference.kept.Decoded != "" &&
		reference.kept.Decoded != ours[0].kept.Decoded {
		same = "DIFFER"
	}
	return append(first, same)
}
