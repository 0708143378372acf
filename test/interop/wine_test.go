package interop

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ggforge/quantize"
)

// wineRoot is the folder of a system that has Wine: / or the reference's chroot. GGFORGE_BIN has the
// commands for Windows in windows/.
var wineRoot = os.Getenv("WINE_ROOT")

// wine runs a program for Windows in a folder inside wineRoot, and returns what it printed, its
// errors, and its exit code.
func wine(t *testing.T, dir, program string, argv ...string) (string, string, int) {
	t.Helper()
	return outcome(t, inWine(append([]string{"sh", "-c", `cd "$0" && exec wine "$@"`, dir, program}, argv...)...))
}

// inWine returns a command in wineRoot, with an environment for Wine.
func inWine(argv ...string) *exec.Cmd {
	cmd := exec.Command("chroot", append([]string{wineRoot}, argv...)...)
	// Nothing else of the environment: with TMPDIR in it, Wine 10 crashes.
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "WINEPREFIX=" + work + "/" + keptFolder +
		"/wine", "WINEDEBUG=-all", "HOME=" + work, "XDG_RUNTIME_DIR=/tmp"}
	return cmd
}

// outcome runs a program to its end. What it prints goes to files: services that it starts, such as Wine's, would
// keep pipes open.
func outcome(t *testing.T, cmd *exec.Cmd) (out, errs string, code int) {
	t.Helper()
	dir := t.TempDir()
	var files [2]*os.File
	for i := range files {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		must(t, err)
		defer f.Close()
		files[i] = f
	}
	cmd.Stdout, cmd.Stderr = files[0], files[1]
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var texts [2]string
	for i, f := range files {
		data, err := os.ReadFile(f.Name())
		must(t, err)
		texts[i] = string(data)
	}
	return texts[0], texts[1], cmd.ProcessState.ExitCode()
}

// needsWine makes an empty work folder for a test that needs Wine.
func needsWine(t *testing.T) {
	if wineRoot == "" {
		t.Skip("needs Wine: run make wine")
	}
	root = strings.TrimSuffix(wineRoot, "/")
	sweep(t)
	must(t, os.MkdirAll(root+work+"/"+keptFolder, 0o777))
	// A server that runs from one program to the next; without it, each would start its own.
	server := func(flag string) *exec.Cmd {
		return inWine("sh", "-c",
			`exec $(ls /usr/lib/*/wine/wineserver /usr/lib/wine/wineserver* 2>/dev/null | head -n 1) `+flag)
	}
	if err := server("-p").Run(); err != nil { // the test only takes longer
		t.Logf("wineserver -p: %v", err)
	}
	t.Cleanup(func() { server("-k").Run() })
}

// costLine matches a command's line about time and memory.
var costLine = regexp.MustCompile(`(?m)^.*(MB/s written|tokens/s), peak memory .*\n`)

// TestWine runs the commands for Windows under Wine and the native ones: files, output and exit codes must be equal.
func TestWine(t *testing.T) {
	needsWine(t)
	text, err := filepath.Glob("../../quants/*.go")
	must(t, err)
	for _, side := range []string{"here", "there"} {
		dir := root + work + "/" + side
		must(t, os.CopyFS(dir+"/gollama", os.DirFS("../testdata/gollama")))
		data, err := os.ReadFile(text[0])
		must(t, err)
		must(t, os.WriteFile(dir+"/text.txt", data, 0o666))
		must(t, os.WriteFile(dir+"/broken.gguf", []byte("GGUF, but no more"), 0o666))
	}
	for _, name := range []string{"ggconv", "ggquant", "ggtool", "ggeval"} {
		data, err := os.ReadFile(filepath.Join(bin, "windows", name+".exe"))
		must(t, err)
		must(t, os.WriteFile(root+work+"/"+name+".exe", data, 0o777))
	}
	lines := []string{
		"ggconv gollama base.gguf",
		"ggconv gollama base.gguf", // is there already
		"ggconv --force gollama base.gguf",
		"ggconv --outtype q8_0 --split-max-size 3M gollama out-q8_0.gguf",
		"ggconv nowhere x.gguf",
		"ggconv gollama größe-模型.gguf",
		"ggeval imatrix gollama -f text.txt -c 64 --chunks 4 -o im.gguf",
		"ggeval perplexity base.gguf -f text.txt -c 64 --chunks 4",
		"ggquant --out-dir two gollama Q8_0 Q5_K_M",
		"ggquant --calibrate text.txt --effort high base.gguf high.gguf Q3_K_S",
		"ggtool split --max-tensors 10 base.gguf part",
		"ggtool split --max-tensors 10 base.gguf part",
		"ggtool split --force --max-tensors 10 base.gguf part", // replaces several files together
		"ggtool merge part-00001-of-00006.gguf merged.gguf",
		"ggtool meta --set general.name=str:name --reserve 1000 base.gguf -o named.gguf",
		"ggtool meta --set general.name=str:another-name named.gguf", // in place
		"ggtool meta --set general.description=str:text merged.gguf", // rewrites the file
		"ggtool inspect --json named.gguf",
		"ggtool inspect part-00001-of-00006.gguf",
		"ggtool hash --all base.gguf",
		"ggtool diff base.gguf merged.gguf",
		"ggtool diff base.gguf named.gguf",
		"ggtool verify base.gguf",
		"ggtool verify broken.gguf",
		"ggtool endian base.gguf big.gguf",
		"ggtool export base.gguf exported",
		"ggtool imatrix convert im.gguf im.dat",
		"ggquant base.gguf con.gguf Q9_Z",
	}
	for _, r := range quantize.Recipes() {
		lines = append(lines, fmt.Sprintf("ggquant --imatrix im.gguf base.gguf %s.gguf %s", r.Name, r.Name))
	}
	codes := map[int]int{}
	for _, line := range lines {
		argv := strings.Fields(line)
		cmd := exec.Command(filepath.Join(bin, argv[0]), argv[1:]...)
		cmd.Dir = root + work + "/here"
		ourOut, ourErr, ourCode := outcome(t, cmd)
		out, errs, code := wine(t, work+"/there", work+"/"+argv[0]+".exe", argv[1:]...)
		if code != ourCode {
			t.Errorf("%s: exit code %d, here %d\n%s\n%s", line, code, ourCode, errs, ourErr)
		}
		if out, ourOut = costLine.ReplaceAllString(out, ""),
			costLine.ReplaceAllString(ourOut, ""); strings.ReplaceAll(out, `\`, "/") != ourOut {
			t.Errorf("%s: prints\n%s\nhere\n%s", line, out, ourOut)
		}
		codes[code]++
	}
	if codes[0] < 40 || codes[2] < 3 || codes[3] == 0 || codes[6] == 0 {
		t.Errorf("exit codes %v, want at least 40 of 0, 3 of 2, 1 of 3 and 1 of 6", codes)
	}
	here, there := sums(t, root+work+"/here"), sums(t, root+work+"/there")
	names := map[string]bool{}
	for _, list := range []map[string]string{here, there} {
		for name := range list {
			names[name] = true
		}
	}
	count := 0
	for name := range names {
		if here[name] != there[name] {
			t.Errorf("%s: sha256 %q, here %q", name, there[name], here[name])
		} else {
			count++
		}
	}
	t.Logf("%d commands, exit codes %v; %d files the same", len(lines), codes, count)
}

// sums returns the SHA-256 sums of all files below a folder.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	list := map[string]string{}
	must(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		list[name] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	}))
	return list
}

// TestWinePackages runs the tests of packages that deal with files under Wine, without those of commands, which expect
// paths and error texts of other systems.
func TestWinePackages(t *testing.T) {
	needsWine(t)
	list := exec.Command("git", "ls-files", "-co", "--exclude-standard")
	list.Dir = "../.."
	files, _, code := outcome(t, list)
	if code != 0 {
		t.Fatal("git ls-files: ", code)
	}
	tree := work + "/tree"
	for name := range strings.Lines(files) {
		name = strings.TrimSpace(name)
		data, err := os.ReadFile("../../" + name)
		if errors.Is(err, fs.ErrNotExist) { // removed, and not committed
			continue
		}
		must(t, err)
		must(t, os.MkdirAll(filepath.Dir(root+tree+"/"+name), 0o777))
		must(t, os.WriteFile(root+tree+"/"+name, data, 0o666))
	}
	packages, err := os.ReadFile("wine.txt") // test/trust reads it, too
	must(t, err)
	for _, pkg := range strings.Fields(string(packages)) {
		t.Run(pkg, func(t *testing.T) {
			build := exec.Command("go", "test", "-c", "-o", root+tree+"/"+pkg+"/test.exe", "./"+pkg)
			build.Dir = "../.."
			build.Env = append(os.Environ(), "GOOS=windows", "CGO_ENABLED=0")
			if out, errs, code := outcome(t, build); code != 0 {
				t.Fatalf("go test -c: %s%s", out, errs)
			}
			out, errs, code := wine(t, tree+"/"+pkg, "test.exe", "-test.short", "-test.v")
			if code != 0 {
				t.Errorf("exit code %d\n%s\n%s", code, failures(out), errs)
			}
			t.Logf("%d tests pass, %d are skipped", strings.Count(out, "\n--- PASS"), strings.Count(out, "\n--- SKIP"))
		})
	}
}

// failures returns the lines of a test's output around the first failure.
func failures(out string) string {
	lines := strings.Split(out, "\n")
	at := slices.IndexFunc(lines, func(s string) bool { return strings.Contains(s, "--- FAIL") })
	return strings.Join(lines[max(at-10, 0):min(max(at, 0)+40, len(lines))], "\n")
}
