// Scale simulates a model of a trillion weights on 256 machines, and measures its plan: make scale.
//
//	checkpoint   the layout of a published mixture of experts in 62 shards of 2 TB: real headers, holes for weights
//	plan         ggquant --dry-run over it, and the same plan in this process: every tensor, offset and share of a part
//	simulation   events in the order of time: machines read units of rows, encode and send them, are killed and replaced
//
// Names, sizes, cuts between parts and lengths of requests are those of the program. Rates of machines and stores, and
// prices, are inputs, which the table names. It is written into docs/clusters.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ggforge/convert"
	"ggforge/quantize"
	"ggforge/quantize/batch"
	"ggforge/writer"
)

const (
	parts     = 256
	mostTime  = 10 * time.Second // for the plan
	mostBytes = 500_000_000      // of memory
	pre       = "deepseek-v3"
)

// prices are list prices for a region in the United States, in dollars: those of Amazon S3 Standard
// (https://aws.amazon.com/s3/pricing/), and a round figure for a machine of 8 processors.
var prices = struct {
	date                       string
	machine, gets, puts, month float64
}{"2025-11", 0.36, 0.0004, 0.005, 0.023} // an hour; 1,000 requests; 1,000 requests; a GB

// worlds are the cases of the table. A store answers a request after 30 ms at 80 MB/s, by what its maker advises to
// expect of one (https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance-guidelines.html).
var worlds = []world{
	{name: "file system", cpus: 8, link: 2e9, stream: 2e9, latency: 0.001, read: 20e9, write: 10e9},
	{name: "file system, slow disks, kills", cpus: 8, link: 2e9, stream: 2e9, latency: 0.005, read: 4e9, write: 2e9, kills: 600, back: 120},
	{name: "object store", objects: true, cpus: 8, link: 1.2e9, stream: 80e6, latency: 0.03, read: 200e9, write: 100e9},
	{name: "object store, kills", objects: true, cpus: 8, link: 1.2e9, stream: 80e6, latency: 0.03, read: 200e9, write: 100e9,
		kills: 60, back: 120},
	{name: "object store, slow machines", objects: true, cpus: 8, link: 1.2e9, stream: 80e6, latency: 0.03, read: 200e9, write: 100e9,
		slow: 0.1},
	{name: "slow store, kills", objects: true, cpus: 8, link: 1.2e9, stream: 20e6, latency: 0.2, busy: 0.05, read: 10e9, write: 5e9,
		kills: 300, back: 120},
}

var recipes = []string{"Q4_K_M", "F16"}

func main() {
	document := flag.String("o", "docs/clusters.md", "write the tables to `FILE`")
	bin := flag.String("bin", "bin", "`FOLDER` of the commands")
	flag.Parse()
	if err := run(context.Background(), *document, *bin); err != nil {
		fmt.Fprintf(os.Stderr, "scale: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, document, bin string) error {
	dir, err := os.MkdirTemp("", "scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	m, err := makeModel(dir)
	if err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The model: %.3f trillion weights, %d tensors in %d files, %s in BF16, with the layout of Kimi-K2-Base. "+
		"`ggquant --dry-run` plans it from the local headers:\n\n| output | size | tensors | plan: time | memory |\n"+
		"| --- | ---: | ---: | ---: | ---: |\n", float64(m.weights)/1e12, m.tensors, m.shards, amount(float64(m.bytes)))
	type job struct {
		recipe string
		shares []writer.Share
		size   int64
		start  time.Duration
	}
	var jobs []job
	for _, name := range recipes {
		took, memory, err := dryRun(ctx, bin, m.dir, name)
		if err != nil {
			return err
		}
		shares, tensors, size, err := plan(ctx, m.dir, name)
		if err != nil {
			return err
		}
		jobs = append(jobs, job{name, shares, size, took})
		fmt.Fprintf(&b, "| %s | %s | %d | %.1f s | %.0f MB |\n", name, amount(float64(size)), tensors, took.Seconds(),
			float64(memory)/1e6)
		if took > mostTime || memory > mostBytes {
			return fmt.Errorf("%s: the plan takes %v and %d bytes, at most %v and %d are permitted", name, took, memory, mostTime,
				mostBytes)
		}
	}
	fmt.Fprintf(&b, "\n%d parts on as many machines, simulated event by event:\n\n", parts)
	b.WriteString("| where, output | time | `--finish` | kills | a part reads: mean, most | sends: mean, most | read, sent again | " +
		"requests: GET | PUT | machine hours | cost |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, w := range worlds {
		for _, j := range jobs {
			piece := writer.PieceBytes(j.size, len(j.shares))
			o := simulate(w, j.shares, j.size, piece, j.start.Seconds()+3, m.shards)
			gets, puts, cost := "", "", o.machineHours*prices.machine
			if w.objects {
				gets, puts = fmt.Sprint(o.gets), fmt.Sprint(o.puts)
				cost += float64(o.gets)/1000*prices.gets + float64(o.puts)/1000*prices.puts
			}
			fmt.Fprintf(&b, "| %s: %s | %s | %s | %d | %s, %s | %s, %s | %.1f %%, %.1f %% | %s | %s | %.1f | $%.2f |\n", w.name, j.recipe,
				clock(o.seconds), clock(o.finish), o.kills, amount(o.readMean), amount(o.readMost), amount(o.sentMean), amount(o.sentMost),
				100*max(0, o.readShare-1), 100*max(0, o.sentShare-1), gets, puts, o.machineHours, cost)
		}
	}
	b.WriteString("\nWhat goes in, for a machine of 8 processors:\n\n| where | link, a request | latency | answered by 503 | " +
		"all machines read, write | slow machines | killed every | replaced after |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, w := range worlds {
		every, back := "", ""
		if w.kills > 0 {
			every, back = clock(w.kills), clock(w.back)
		}
		fmt.Fprintf(&b, "| %s | %s/s, %s/s | %.0f ms | %.0f %% | %s/s, %s/s | %.0f %% | %s | %s |\n", w.name, amount(w.link),
			amount(w.stream), 1000*w.latency, 100*w.busy, amount(w.read), amount(w.write), 100*w.slow, every, back)
	}
	fmt.Fprintf(&b, "\nPrices in dollars, list prices of %s, without those of a file system, of traffic between regions, and of "+
		"storage: %.2f for an hour of a machine (a round figure), %.4f for 1,000 GET and %.3f for 1,000 PUT requests (Amazon S3 Standard). "+
		"To keep the output costs %.3f for a GB and month: $%.2f for %s.\n", prices.date, prices.machine, prices.gets, prices.puts, prices.month,
		float64(jobs[0].size)/1e9*prices.month, jobs[0].recipe)
	return fill(document, b.String())
}

// dryRun measures the command: the median of three.
func dryRun(ctx context.Context, bin, dir, recipe string) (time.Duration, int64, error) {
	var times []time.Duration
	var most int64
	for range 3 {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "ggquant"), "--dry-run", "--pre", pre, dir,
			filepath.Join(filepath.Dir(dir), "out.gguf"), recipe)
		begin := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, 0, fmt.Errorf("ggquant --dry-run: %w: %.400s", err, out)
		}
		times = append(times, time.Since(begin))
		memory, err := peak(cmd.ProcessState)
		if err != nil {
			return 0, 0, err
		}
		most = max(most, memory)
	}
	slices.Sort(times)
	return times[1], most, nil
}

// plan plans the same output in this process, and returns the shares of its parts.
func plan(ctx context.Context, dir, recipe string) (_ []writer.Share, tensors int, size int64, err error) {
	m, _, err := convert.Open(ctx, dir, convert.Options{Pre: pre})
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	r, ok := quantize.LookupRecipe(recipe)
	if !ok {
		return nil, 0, 0, fmt.Errorf("no recipe %s", recipe)
	}
	out := filepath.Join(filepath.Dir(dir), "out.gguf")
	made, err := batch.Prepare(ctx, m, &batch.Request{Recipes: []*quantize.Recipe{r}, Paths: []string{out}, DryRun: true})
	if err != nil {
		return nil, 0, 0, err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	files, err := made.Jobs[0].Files(out)
	if err != nil {
		return nil, 0, 0, err
	}
	for _, f := range files {
		tensors, size = tensors+len(f.Tensors), size+f.Size()
	}
	return writer.Shares([][]*writer.File{files}, parts), tensors, size, nil
}

// amount writes bytes in powers of 1000.
func amount(n float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if n < 999.5 {
			return fmt.Sprintf("%.3g %s", n, unit)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.3g TB", n)
}

func clock(seconds float64) string {
	if seconds < 120 {
		return fmt.Sprintf("%.0f s", seconds)
	}
	return fmt.Sprintf("%.0f min", seconds/60)
}

const (
	begin = "<!-- make scale writes this -->\n"
	end   = "<!-- end of make scale -->\n"
)

// fill replaces the section of a document between two lines.
func fill(path, section string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s: no lines %q and %q", path, begin, end)
	}
	return os.WriteFile(path, []byte(before+begin+section+end+after), 0o666)
}
