// Release packs the files of a release. The commands of every platform are in dist/bin/GOOS-GOARCH
// (make release builds them); next to that folder it writes
//
//	ggforge_VERSION_GOOS_GOARCH.tar.gz, .zip for Windows   commands, licences, notes; manual pages and completions of dist/share
//	ggforge_VERSION_GOARCH.deb                             the same for Debian
//	ggforge_VERSION.cdx.json                               bill of materials
//	SHA256SUMS                                             of all of these
//	ggforge.rb, NOTES.md                                   Homebrew formula, this version's changes
//
// Every time in a file is that of the commit and every list is sorted, so that building the commit again gives the
// same bytes. With -version it prints the version only.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// name is the name of the project, with which names of files begin.
const name = "ggforge"

// notes are the files of the repository that every archive has next to the commands.
var notes = []string{"CHANGELOG.md", "LICENSE", "README.md", "docs/NOTICE", "docs/THIRD_PARTY.md"}

// release has the facts that all steps share.
type release struct {
	tree    string // the repository
	out     string // dist
	version string
	date    time.Time
	home    string // address of the project's page
	nfpm    string // command that makes Debian packages, as PACKAGE@VERSION for go run
	changes string // of this version
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) error {
	r := release{tree: "."}
	f := flag.NewFlagSet("release", flag.ContinueOnError)
	f.StringVar(&r.out, "o", "dist", "`FOLDER` that has bin, and takes the rest")
	f.StringVar(&r.home, "home", "", "`ADDRESS` of the project's page, under which releases are")
	f.StringVar(&r.nfpm, "nfpm", "", "`PACKAGE@VERSION` of nfpm (without it, there are no packages for Debian)")
	only := f.Bool("version", false, "print the version and end")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("surplus argument %q", f.Arg(0))
	}
	text, err := os.ReadFile(filepath.Join(r.tree, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	log, err := parseChangelog(string(text))
	if err != nil {
		return fmt.Errorf("CHANGELOG.md: %w", err)
	}
	src, err := describe(ctx, r.tree)
	if err != nil {
		return err
	}
	if r.version, err = version(log, src); err != nil {
		return err
	}
	if *only {
		_, err := fmt.Fprintln(w, r.version)
		return err
	}
	r.date, r.changes = src.date, changes(log, src)
	return r.pack(ctx, w)
}

// pack writes all files.
func (r *release) pack(ctx context.Context, w io.Writer) error {
	platforms, err := r.platforms()
	if err != nil {
		return err
	}
	var published []string // names of files in out
	sums := map[string]string{}
	for _, p := range platforms {
		archive, err := r.archive(p)
		if err != nil {
			return err
		}
		published = append(published, archive)
		if r.nfpm != "" && p.os == "linux" {
			deb, err := r.deb(ctx, p)
			if err != nil {
				return err
			}
			published = append(published, deb)
		}
	}
	bill, err := r.bill(platforms)
	if err != nil {
		return err
	}
	published = append(published, bill)
	slices.Sort(published)
	var list bytes.Buffer
	for _, f := range published {
		sum, size, err := sumOf(filepath.Join(r.out, f))
		if err != nil {
			return err
		}
		sums[f] = sum
		fmt.Fprintf(&list, "%s  %s\n", sum, f)
		fmt.Fprintf(w, "%11d  %s\n", size, f)
	}
	formula, err := r.formula(platforms, sums)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{"SHA256SUMS", list.Bytes()}, {name + ".rb", formula}, {"NOTES.md", []byte(r.changes)}} {
		if err := os.WriteFile(filepath.Join(r.out, f.name), f.data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// platform is a folder of dist/bin.
type platform struct {
	os, arch string
	commands []string // names of files, sorted
}

func (p platform) folder() string { return p.os + "-" + p.arch }

// platforms lists what has been built. All platforms have the same commands.
func (r *release) platforms() ([]platform, error) {
	dirs, err := os.ReadDir(filepath.Join(r.out, "bin"))
	if err != nil {
		return nil, err
	}
	var all []platform
	for _, d := range dirs {
		system, arch, ok := strings.Cut(d.Name(), "-")
		if !ok || !d.IsDir() {
			return nil, fmt.Errorf("%s: want folders GOOS-GOARCH", filepath.Join(r.out, "bin", d.Name()))
		}
		p := platform{os: system, arch: arch}
		files, err := os.ReadDir(filepath.Join(r.out, "bin", d.Name()))
		if err != nil {
			return nil, err
		}
		var plain []string
		for _, f := range files {
			p.commands = append(p.commands, f.Name())
			plain = append(plain, strings.TrimSuffix(f.Name(), ".exe"))
		}
		if len(all) > 0 && !slices.Equal(plain, all[0].plain()) {
			return nil, fmt.Errorf("%s: has %q, %s has %q", d.Name(), plain, all[0].folder(), all[0].plain())
		}
		all = append(all, p)
	}
	if len(all) == 0 || len(all[0].commands) == 0 {
		return nil, fmt.Errorf("%s: nothing has been built", filepath.Join(r.out, "bin"))
	}
	return all, nil
}

// plain returns the names of the commands without a system's ending.
func (p platform) plain() []string {
	var list []string
	for _, c := range p.commands {
		list = append(list, strings.TrimSuffix(c, ".exe"))
	}
	return list
}

// deb makes the package for Debian of a platform.
func (r *release) deb(ctx context.Context, p platform) (string, error) {
	deb := fmt.Sprintf("%s_%s_%s.deb", name, r.version, p.arch)
	cmd := exec.CommandContext(ctx, "go", "run", r.nfpm, "package", "--packager", "deb", "--config",
		"packaging/nfpm.yaml", "--target", filepath.Join(r.out, deb))
	cmd.Dir = r.tree
	// It is a program of another module, built for this machine.
	cmd.Env = append(os.Environ(), "GOEXPERIMENT=", "GOOS=", "GOARCH=", "GOFLAGS=",
		"SOURCE_DATE_EPOCH="+strconv.FormatInt(r.date.Unix(), 10),
		"PACKAGE_VERSION="+r.version, "PACKAGE_ARCH="+p.arch, "PACKAGE_HOME="+r.home,
		"PACKAGE_BIN="+filepath.Join(r.out, "bin", p.folder()), "PACKAGE_SHARE="+filepath.Join(r.out, "share"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %s: %w\n%s", deb, r.nfpm, err, out)
	}
	return deb, nil
}

// sumOf returns the SHA-256 sum of a file, in hexadecimal, and its size.
func sumOf(path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), n, err
}

// entry is a file of an archive.
type entry struct {
	name string // in the archive
	path string
	mode fs.FileMode
}

// entries lists what an archive has, sorted by name.
func (r *release) entries(p platform) ([]entry, error) {
	var all []entry
	for _, c := range p.commands {
		all = append(all, entry{c, filepath.Join(r.out, "bin", p.folder(), c), 0o755})
	}
	for _, n := range notes {
		all = append(all, entry{path.Base(n), filepath.Join(r.tree, filepath.FromSlash(n)), 0o644})
	}
	share := filepath.Join(r.out, "share") // manual pages, completions
	err := filepath.WalkDir(share, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(share, path)
		all = append(all, entry{filepath.ToSlash(rel), path, 0o644})
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return all, err
}
