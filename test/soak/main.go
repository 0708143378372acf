// Soak kills commands at random moments while they write, on a small real file system, and looks at the files that
// they leave: under final names there are old files or new ones, whole, and the same commands, run again with
// --resume, end with the right SHA-256. `make soak` runs it.
//
//	go run ./test/soak -bin bin -kills 1000
//
// As root it makes an ext4 file system of a few megabytes in a file, and mounts it. Then it can cut the power, too: it
// copies that file as it is, without the data that the system had not written yet, and resumes from the copy. Elsewhere
// it works in a folder. A push goes to a hub in the process itself.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

func main() {
	s := &soak{kills: map[string]*count{}}
	bin := flag.String("bin", "bin", "folder of the commands")
	flag.IntVar(&s.want, "kills", 1000, "how many runs to kill")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the random numbers")
	dir := flag.String("dir", "", "a folder to work in, instead of a new file system")
	flag.IntVar(&s.size, "size", 48, "size of the new file system, in MiB")
	only := flag.String("jobs", "", "the jobs whose names match this `REGEXP`; -list prints all")
	list := flag.Bool("list", false, "print the names of the jobs")
	asJSON := flag.Bool("json", false, "print one JSON object")
	input := flag.String("input", "test/testdata/gollama", "checkpoint to convert")
	flag.Parse()
	s.random = rand.New(rand.NewPCG(*seed, 0))
	fmt.Fprintf(os.Stderr, "seed %d\n", *seed)
	var err error
	if s.only, err = regexp.Compile(*only); err == nil {
		begin := time.Now()
		if err = s.main(*bin, *dir, *input, *list); err == nil && *asJSON {
			err = json.NewEncoder(os.Stdout).Encode(s.figures())
		} else if err == nil && !*list {
			s.report(time.Since(begin))
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "soak: seed %d: %v\n", *seed, err)
		os.Exit(1)
	}
}

func (s *soak) main(bin, dir, input string, list bool) (err error) {
	if s.bin, err = filepath.Abs(bin); err != nil {
		return err
	}
	if s.in, err = os.MkdirTemp("", "soak-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.in)
	s.disk = &disk{root: dir}
	if dir == "" && mountable() {
		if s.disk, err = makeDisk(filepath.Join(s.in, "disk"), s.size); err != nil {
			return err
		}
	} else if dir == "" {
		s.disk.root = filepath.Join(s.in, "folder")
	}
	defer func() {
		if e := s.disk.close(); err == nil {
			err = e
		}
	}()
	if err := s.prepare(input, list); err != nil || list {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for s.done() < s.want && ctx.Err() == nil {
		if err := s.round(); err != nil {
			return err
		}
	}
	return nil
}
