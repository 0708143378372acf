package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"ggforge/internal/io/part"
)

// soak is a run of the program.
type soak struct {
	bin, in string // folders of commands, and of inputs
	disk    *disk
	size    int            // of the file system, in MiB
	want    int            // number of runs to kill
	only    *regexp.Regexp // names of jobs
	random  *rand.Rand
	env     []string // of the commands, in addition to our own
	noted   []byte   // a file whose metadata a job changes
	jobs    []*job
	kills   map[string]*count // by job
	slowest time.Duration     // from SIGTERM to the end of a process
	cuts    int               // of the power
	full    int               // rounds in which the disk was filled
	resumed int               // runs after kills that ended with the right bytes
}

// job is a command that makes files, or several that make them together.
type job struct {
	name     string
	commands [][]string        // OUT is the folder of outputs, IN that of inputs
	before   map[string][]byte // files that are there before in half of the rounds, or in all
	inPlace  bool              // files are changed where they are
	resumes  bool              // without a flag
	oneByOne bool              // files appear one after the other, not together
	server   server            // where the files of remote come to be
	local    [][]string        // commands that make the files of remote in OUT, outputs in one process
	remote   map[string][]byte
	after    map[string][]byte
	takes    time.Duration
	room     int64 // bytes on the disk that it needs
}

// server is a server that a job writes to: a new one for each round.
type server interface {
	reset()
	env() []string
	// begun reports whether the server has something of the run; there is false if files show that.
	begun() (yes, there bool)
	// judge looks at the files on the server: none, some or all of those wanted, whole.
	judge(want map[string][]byte) (phase string, err error)
	// finished checks that the server has the files, and what was sent twice after so many kills. A power cut may lose
	// records of what was sent.
	finished(want map[string][]byte, kills int, cut bool) error
}

// count holds the number of kills of a job, by signal and by the phase in which they struck, and the number of runs that
// ended before they could be killed.
type count struct{ kill, term, before, during, commit, after, ended int }

func (c *count) all() int { return c.before + c.during + c.commit + c.after }

func (s *soak) done() (n int) {
	for _, c := range s.kills {
		n += c.all()
	}
	return n
}

// ours matches names of temporary files and of files that exist while names change, commits only the latter.
var (
	ours = regexp.MustCompile(`\.partial(\.|$)|^ggforge-[0-9a-f]{16}(\.commit|\.done|-\d+\.old)$|` +
		`\.part-\d+-of-\d+|\.state$|^\.ggtool-release(/|$)`)
	commits = regexp.MustCompile(`^ggforge-[0-9a-f]{16}`)
	scraps  = regexp.MustCompile(`\.partial\.run\.\d+$`) // files that no command reads
)

func (s *soak) out() string { return filepath.Join(s.disk.root, "out") }

// temp is the folder for temporary files of the commands.
func (s *soak) temp() string { return filepath.Join(s.in, "temp") }

// command returns a command of a job. Words NAME=VALUE before it are its environment, which has no other numbers of
// parts than those.
func (s *soak) command(args []string, more ...string) *exec.Cmd {
	env := append(os.Environ(), s.env...)
	for _, v := range part.Schedulers {
		env = append(env, v.Index+"=", v.Count+"=") // empty is not set
	}
	env = append(env, "TMPDIR="+s.temp())
	for ; strings.Contains(args[0], "="); args = args[1:] {
		env = append(env, args[0])
	}
	var list []string
	for _, a := range append(slices.Clone(args[1:]), more...) {
		list = append(list, strings.NewReplacer("OUT", s.out(), "IN", s.in).Replace(a))
	}
	cmd := exec.Command(filepath.Join(s.bin, args[0]), list...)
	cmd.Env = env
	return cmd
}

// prepare makes inputs and runs each job once.
func (s *soak) prepare(checkpoint string, list bool) error {
	checkpoint, err := filepath.Abs(checkpoint)
	if err != nil {
		return err
	}
	note := func(c string) string { return "soak.note=str:" + strings.Repeat(c, 40_000) }
	if !list {
		if err := s.inputs(checkpoint, note("a")); err != nil {
			return err
		}
	}
	old := func(names ...string) map[string][]byte {
		files := map[string][]byte{}
		for _, name := range names {
			files[name] = []byte("what was there before, " + name)
		}
		return files
	}
	several := []string{"ggquant", "--quiet", "--force", "--out-dir", "OUT", "--name-template", "{ftype}.gguf",
		"IN/in.gguf", "Q4_0", "Q8_0", "Q5_K_M"}
	quantize := []string{"ggquant", "--quiet", "--force", "IN/in.gguf", "OUT/m.gguf", "Q8_0"}
	encoder := []string{"ggquant", "--quiet", "--force", "IN/tiny/text_encoder_2", "OUT/m.gguf", "Q8_0"}
	object := []string{"ggconv", "--quiet", "--outtype", "f32", checkpoint, "s3://out/m.gguf"}
	objects := []string{"ggquant", "--quiet", "--name-template", "{ftype}.gguf", "IN/in.gguf", "F16", "Q8_0", "Q4_0",
		"--out-dir"}
	// inParts are the parts of a command, the second one first, and the job that finishes.
	inParts := func(n int, command ...string) (list [][]string) {
		for _, k := range []int{2, 1, 3}[:n] {
			list = append(list, append(slices.Clone(command), "--part", fmt.Sprintf("%d/%d", k, n)))
		}
		return append(list, append(slices.Clone(command), "--finish"))
	}
	// local is a command with a file for its object.
	local := func(command []string) []string {
		command = slices.Clone(command)
		command[slices.Index(command, "s3://out/m.gguf")] = "OUT/m.gguf"
		return command
	}
	numbered := []string{"ggquant", "--quiet", "IN/in.gguf", "s3://out/m.gguf", "Q8_0"}
	tasks := [][]string{ // in the order of inParts
		slices.Concat([]string{"SLURM_ARRAY_TASK_ID=7", "SLURM_ARRAY_TASK_MIN=6", "SLURM_ARRAY_TASK_MAX=8",
			"SLURM_ARRAY_TASK_COUNT=3", "SLURM_ARRAY_TASK_STEP=1"}, numbered, []string{"--part", "auto"}),
		slices.Concat([]string{"AWS_BATCH_JOB_ARRAY_INDEX=0", "AWS_BATCH_JOB_ARRAY_SIZE=3"}, numbered,
			[]string{"--part", "auto"}),
		slices.Concat([]string{"JOB_COMPLETION_INDEX=2"}, numbered, []string{"--part", "auto/3"}),
		append(slices.Clone(numbered), "--finish"),
	}
	matrix := []string{"ggeval", "imatrix", "--quiet", "-f", "IN/text.txt", "-c", "32", "-t", "1", "--sum-chunks", "2",
		"IN/small.gguf", "-o", "s3://out/m.gguf"}
	s.jobs = []*job{
		{name: "ggconv", before: old("m.gguf"), commands: [][]string{{"ggconv", "--quiet", "--force", "--outtype",
			"f16", checkpoint, "OUT/m.gguf"}}},
		{name: "ggconv, shards", before: old("m-00001-of-00006.gguf"),
			commands: [][]string{{"ggconv", "--quiet", "--force", "--outtype", "q8_0", "--split-max-tensors", "10",
				checkpoint, "OUT/m.gguf"}}},
		{name: "ggquant", before: old("m.gguf"), commands: [][]string{quantize}},
		{name: "ggquant, verified", before: old("m.gguf"),
			commands: [][]string{append(slices.Clone(quantize), "--verify")}},
		{name: "ggquant, three outputs", before: old("q8_0.gguf", "q4_0.gguf"), commands: [][]string{several}},
		{name: "ggquant in parts", commands: inParts(3, quantize...)},
		{name: "ggquant in part files", resumes: true,
			commands: inParts(2, append(slices.Clone(quantize), "--part-files", "OUT")...)},
		{name: "text encoder in parts", commands: inParts(3, encoder...)},
		{name: "ggconv in parts, an object", server: &objectStore{}, commands: inParts(3, object...),
			local: [][]string{local(object)}},
		{name: "ggquant in parts, three objects", server: &objectStore{},
			commands: inParts(2, append(slices.Clone(objects), "s3://out")...),
			local:    [][]string{append(slices.Clone(objects), "OUT")}},
		{name: "ggquant in parts, auto", server: &objectStore{}, commands: tasks,
			local: [][]string{local(numbered)}},
		{name: "ggquant, calibrated", before: old("m.gguf"), commands: [][]string{{"ggquant", "--quiet", "--force",
			"--calibrate", "IN/text.txt", "-c", "64", "--effort", "high", "IN/in.gguf", "OUT/m.gguf", "Q4_K_M"}}},
		{name: "ggeval imatrix", before: old("m.gguf"), resumes: true, commands: [][]string{{"ggeval", "imatrix", "--quiet",
			"--force", "-f", "IN/text.txt", "-c", "32", "-t", "1", "--save-every", "1", "IN/small.gguf",
			"-o", "OUT/m.gguf"}}},
		{name: "ggeval imatrix in parts, objects", server: &objectStore{again: true}, commands: inParts(3, matrix...),
			local: append(inParts(3, local(matrix)...)[:3], local(matrix))}, // parts stay
		{name: "ggtool release", resumes: true, oneByOne: true, commands: [][]string{{"ggtool", "release", "--progress",
			"none", "--output", "OUT", "IN/plan.yaml"}}},
		{name: "ggtool push", inPlace: true, resumes: true, server: &hub{}, before: map[string][]byte{"note.gguf": s.noted,
			"README.md": []byte("---\nlicense: mit\n---\n"), "quality.json": []byte("{}\n")},
			commands: [][]string{{"ggtool", "push", "--progress", "none", "OUT", "hf://org/name"}}},
		{name: "ggtool meta", inPlace: true, before: map[string][]byte{"m.gguf": s.noted},
			commands: [][]string{{"ggtool", "meta", "--set", note("b"), "OUT/m.gguf"}}},
	}
	s.jobs = slices.DeleteFunc(s.jobs, func(j *job) bool { return !s.only.MatchString(j.name) })
	if len(s.jobs) == 0 {
		return fmt.Errorf("no job's name matches %s", s.only)
	}
	if list {
		for _, j := range s.jobs {
			fmt.Println(j.name)
		}
		return nil
	}
	for _, j := range s.jobs {
		s.kills[j.name] = &count{}
		for range 3 {
			if err := s.reset(j, j.inPlace); err != nil {
				return err
			}
			if j.server != nil && j.local == nil {
				j.remote = j.before
			} else if j.local != nil && j.remote == nil {
				if err := s.run(j.local); err != nil {
					return err
				}
				if j.remote, err = tree(s.out()); err != nil {
					return err
				}
				if err := s.reset(j, j.inPlace); err != nil {
					return err
				}
			}
			begin := time.Now()
			if err := s.finish(j, false); err != nil {
				return err
			}
			if took := time.Since(begin); j.takes == 0 || took < j.takes {
				j.takes = took
			}
		}
		if j.after, err = tree(s.out()); err != nil {
			return err
		}
		if j.oneByOne || j.server != nil {
			maps.DeleteFunc(j.after, func(name string, _ []byte) bool { return ours.MatchString(name) })
		}
		for _, data := range j.after {
			j.room += int64(len(data))
		}
	}
	return nil
}

// inputs makes the inputs of jobs.
func (s *soak) inputs(checkpoint, note string) error {
	err := s.run([][]string{
		{"ggconv", "--quiet", "--outtype", "f16", checkpoint, "IN/in.gguf"},
		{"ggquant", "--quiet", "IN/in.gguf", "IN/small.gguf", "Q4_0"},
		{"ggtool", "meta", "--set", note, "-o", "IN/note.gguf", "IN/small.gguf"},
	})
	if err != nil {
		return err
	}
	if s.noted, err = os.ReadFile(filepath.Join(s.in, "note.gguf")); err != nil {
		return err
	}
	texts := map[string]string{"text.txt": strings.Repeat("func main() { return nil, err }\n", 60), "plan.yaml": plan}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(s.in, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return s.pipeline()
}

// plan is a release of two models, with figures of both.
const plan = `source: in.gguf
output: release
calibration: {text: text.txt, chunk: 32, chunks: 4}
outputs: [Q8_0, Q4_0]
evaluation: {text: text.txt, chunk: 32, chunks: 4}
`

// tree returns the files below a folder by their paths in it.
func tree(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || scraps.MatchString(e.Name()) {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			files[filepath.ToSlash(name)], err = os.ReadFile(path)
		}
		return err
	})
	return files, err
}

// reset empties the folder of outputs, and if old writes the files of j.before there.
func (s *soak) reset(j *job, old bool) error {
	err := errors.Join(os.RemoveAll(s.out()), os.MkdirAll(s.out(), 0o777))
	s.env = nil
	if j.server != nil {
		j.server.reset()
		s.env = j.server.env()
	}
	if old {
		for name, data := range j.before {
			err = errors.Join(err, os.WriteFile(filepath.Join(s.out(), name), data, 0o666))
		}
	}
	if err == nil && s.disk.image != "" {
		err = system("sync", "-f", s.disk.root) // so that a power cut loses none of these files
	}
	return err
}

// resume returns the flags with which a job resumes.
func (j *job) resume(on bool) []string {
	if on && !j.inPlace && !j.resumes && len(j.commands) == 1 { // parts resume without a flag
		return []string{"--resume"}
	}
	return nil
}

// run runs commands, which leave no temporary files.
func (s *soak) run(commands [][]string, more ...string) error {
	if err := errors.Join(os.RemoveAll(s.temp()), os.Mkdir(s.temp(), 0o777)); err != nil {
		return err
	}
	for _, c := range commands {
		if out, err := s.command(c, more...).CombinedOutput(); err != nil {
			return fmt.Errorf("%.60s: %w: %s", c, err, out)
		}
	}
	left, err := os.ReadDir(s.temp())
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%.60s: left in the folder for temporary files: %v", commands, left)
	}
	return err
}

// finish runs a job to its end.
func (s *soak) finish(j *job, resume bool) error {
	if err := s.run(j.commands, j.resume(resume)...); err != nil {
		return fmt.Errorf("%s: %w", j.name, err)
	}
	return nil
}

// victim is a job that runs in the background.
type victim struct {
	current atomic.Pointer[os.Process]
	killed  atomic.Bool
	done    chan error
}

func (s *soak) start(j *job, resume bool) *victim {
	v := &victim{done: make(chan error, 1)}
	go func() {
		for _, c := range j.commands {
			cmd := s.command(c, j.resume(resume)...)
			var text bytes.Buffer
			cmd.Stderr = &text
			err := cmd.Start()
			if err == nil {
				v.current.Store(cmd.Process)
				if err = cmd.Wait(); err != nil {
					err = fmt.Errorf("%w: %s", err, text.String())
				}
			}
			if err != nil || v.killed.Load() {
				v.done <- err
				return
			}
		}
		v.done <- nil
	}()
	return v
}

// kill waits for a random moment, and reports whether the job was running then: if so, the job starts no further
// process, and the caller sends a signal to the current one.
func (s *soak) kill(j *job, v *victim) (bool, error) {
	over := func(err error) (bool, error) { v.done <- err; return false, nil }
	moment := time.Duration(s.random.Int64N(int64(j.takes)))
	var watch *regexp.Regexp
	switch n := s.random.IntN(6); {
	case n == 0: // at any time
	case n < 3 && len(j.after) > 1: // when names begin to change
		watch, moment = commits, moment/16
	default: // a while after the first temporary file
		watch, moment = ours, moment/3
	}
	for begin := time.Now(); watch != nil && time.Since(begin) < 20*j.takes; {
		if s.seen(j, watch) {
			break
		}
		select {
		case err := <-v.done:
			return over(err)
		case <-time.After(100 * time.Microsecond):
		}
	}
	select {
	case err := <-v.done:
		return over(err)
	case <-time.After(moment):
	}
	if v.current.Load() == nil { // no process has started yet
		return false, nil
	}
	v.killed.Store(true)
	return true, nil
}

// seen reports whether there is a file whose name watch matches, or something on the job's server.
func (s *soak) seen(j *job, watch *regexp.Regexp) bool {
	if j.server != nil {
		if yes, there := j.server.begun(); there {
			return yes
		}
	}
	list, _ := os.ReadDir(s.out())
	return slices.ContainsFunc(list, func(e fs.DirEntry) bool { return watch.MatchString(e.Name()) })
}

// judge compares the files with the old and new ones of the job. phase names the step that was killed.
func (s *soak) judge(j *job, old bool) (phase string, err error) {
	files, err := tree(s.out())
	if err != nil {
		return "", err
	}
	before := map[string][]byte{}
	if old {
		before = j.before
	}
	partial, commit := false, false
	for name := range files {
		partial = partial || ours.MatchString(name)
		commit = commit || commits.MatchString(name)
	}
	olds, news, gone := 0, 0, 0
	names := map[string][]byte{}
	maps.Copy(names, before)
	maps.Copy(names, j.after)
	for name := range names {
		got, there := files[name]
		was, had := before[name]
		_, is := j.after[name]
		switch {
		case there && is && bytes.Equal(got, j.after[name]):
			news++
		case there && had && bytes.Equal(got, was):
			olds++
		case !there && !had:
			olds++
		case !there:
			gone++
		case j.inPlace && files[name+".header.partial"] != nil:
		default:
			return "", fmt.Errorf("%s: %s is neither the old file nor the new one: %d bytes, SHA-256 %x", j.name, name,
				len(got), sha256.Sum256(got))
		}
	}
	for name := range files {
		if _, ok := names[name]; !ok && !ours.MatchString(name) {
			return "", fmt.Errorf("%s: unexpected file %s", j.name, name)
		}
	}
	if !commit && (gone > 0 || olds > 0 && news > 0 && !j.oneByOne) {
		return "", fmt.Errorf("%s: %d old files, %d new ones, %d are gone, and no journal", j.name, olds, news, gone)
	}
	switch {
	case j.server != nil:
		return j.server.judge(j.remote)
	case commit:
		return "commit", nil
	case news == len(j.after):
		return "after", nil
	case partial:
		return "during", nil
	}
	return "before", nil
}

// round runs a job, kills it several times, and then lets it end.
func (s *soak) round() error {
	j := s.jobs[s.random.IntN(len(s.jobs))]
	old := j.inPlace || s.random.IntN(2) == 0
	if err := s.reset(j, old); err != nil {
		return err
	}
	room := func() error { return nil }
	onDisk := s.disk.image != "" && j.room > 0
	if onDisk && s.random.IntN(10) == 0 {
		var err error
		if room, err = s.disk.fill(s.random.Int64N(j.room * 5 / 4)); err != nil {
			return err
		}
		s.full++
	}
	resume, killed, cuts := s.random.IntN(3) == 0, 0, s.cuts
	for n := 1 + s.random.IntN(3); n > 0; n-- {
		v := s.start(j, resume)
		sig := syscall.SIGKILL
		if s.random.IntN(5) == 0 {
			sig = syscall.SIGTERM
		}
		struck, err := s.kill(j, v)
		if err != nil {
			return err
		}
		at := time.Now()
		if struck {
			if err := v.current.Load().Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return err
			}
		}
		err = <-v.done
		if took := time.Since(at); struck && sig == syscall.SIGTERM && err != nil {
			s.slowest = max(s.slowest, took)
		}
		if struck && onDisk && s.random.IntN(8) == 0 {
			s.cuts++
			if s.disk, err = s.disk.cut(); err != nil {
				return err
			}
			err = errors.New("power cut")
		}
		phase, wrong := s.judge(j, old)
		if wrong != nil {
			return fmt.Errorf("%w (after %v: %v)", wrong, sig, err)
		}
		if err == nil && phase != "after" && !(struck && len(j.commands) > 1) {
			return fmt.Errorf("%s: ended without an error, and the phase is %q", j.name, phase)
		}
		c := s.kills[j.name]
		if err == nil {
			c.ended++
		} else if struck {
			killed++
			*map[string]*int{"before": &c.before, "during": &c.during, "commit": &c.commit, "after": &c.after}[phase]++
			if sig == syscall.SIGTERM {
				c.term++
			} else {
				c.kill++
			}
		}
		resume = true
	}
	if err := room(); err != nil {
		return err
	}
	if err := s.finish(j, true); err != nil {
		return fmt.Errorf("after kills: %w", err)
	}
	files, err := tree(s.out())
	if err != nil {
		return err
	}
	if j.oneByOne || j.server != nil { // what it keeps is for the next run
		maps.DeleteFunc(files, func(name string, _ []byte) bool { return ours.MatchString(name) })
	}
	if j.server != nil {
		if err := j.server.finished(j.remote, killed, s.cuts > cuts); err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
	}
	if !maps.EqualFunc(files, j.after, bytes.Equal) {
		return fmt.Errorf("%s: other files than of a run that was never killed: %v, want %v", j.name,
			slices.Sorted(maps.Keys(files)), slices.Sorted(maps.Keys(j.after)))
	}
	s.resumed++
	return nil
}

// figures are what a run prints with -json.
type figures struct {
	Kills     int   `json:"kills"`
	Ended     int   `json:"ended"` // runs that ended before they could be killed
	SIGKILL   int   `json:"sigkill"`
	SIGTERM   int   `json:"sigterm"`
	Before    int   `json:"before"`
	Writing   int   `json:"writing"`
	Names     int   `json:"names_changing"`
	After     int   `json:"after"`
	Rounds    int   `json:"rounds"`
	PowerCuts int   `json:"power_cuts"`
	Full      int   `json:"full_disks"`
	SlowestMS int64 `json:"slowest_ms"` // from SIGTERM to the end of a process
}

func (s *soak) figures() *figures {
	f := &figures{Rounds: s.resumed, PowerCuts: s.cuts, Full: s.full, SlowestMS: s.slowest.Milliseconds()}
	for _, c := range s.kills {
		f.Kills, f.SIGKILL, f.SIGTERM, f.Ended = f.Kills+c.all(), f.SIGKILL+c.kill, f.SIGTERM+c.term, f.Ended+c.ended
		f.Before, f.Writing, f.Names, f.After = f.Before+c.before, f.Writing+c.during, f.Names+c.commit, f.After+c.after
	}
	return f
}

func (s *soak) report(took time.Duration) {
	fmt.Printf("%-32s %6s %6s %6s %8s %8s %8s %10s %8s\n", "", "kills", "KILL", "TERM", "ended", "before", "writing",
		"committing", "after")
	all := &count{}
	row := func(name string, c *count) {
		fmt.Printf("%-32s %6d %6d %6d %8d %8d %8d %10d %8d\n", name, c.all(), c.kill, c.term, c.ended, c.before, c.during,
			c.commit, c.after)
	}
	for _, j := range s.jobs {
		c := s.kills[j.name]
		row(j.name, c)
		all = &count{all.kill + c.kill, all.term + c.term, all.before + c.before, all.during + c.during,
			all.commit + c.commit, all.after + c.after, all.ended + c.ended}
	}
	row("all", all)
	fmt.Printf("%d rounds ended with the right bytes, no wrong file; %d power cuts, %d times the disk was full; "+
		"slowest end after SIGTERM %v; %v\n",
		s.resumed, s.cuts, s.full, s.slowest.Round(time.Millisecond), took.Round(time.Second))
}
