package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// disk is the place of the outputs: a file system in a file, or a folder.
type disk struct {
	root  string
	image string // "" for a folder
}

// mountable reports whether file systems can be made here.
func mountable() bool {
	_, err := exec.LookPath("mkfs.ext4")
	return err == nil && os.Geteuid() == 0
}

func system(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, out)
	}
	return nil
}

// makeDisk makes an ext4 file system of size MiB and mounts it.
func makeDisk(path string, size int) (*disk, error) {
	d := &disk{root: path, image: path + ".img"}
	f, err := os.Create(d.image)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Truncate(int64(size)<<20), f.Close()); err != nil {
		return nil, err
	}
	if err := system("mkfs.ext4", "-q", "-F", "-b", "1024", "-J", "size=4", "-m", "0", d.image); err != nil {
		return nil, err
	}
	return d, d.mount()
}

func (d *disk) mount() error {
	if err := os.MkdirAll(d.root, 0o777); err != nil {
		return err
	}
	return system("mount", "-o", "loop", d.image, d.root)
}

func (d *disk) close() error {
	if d.image == "" {
		return nil
	}
	return errors.Join(system("umount", d.root), os.Remove(d.image))
}

// cut returns the disk in its state after a power cut, without the data that the system had not written yet. It
// replaces d.
func (d *disk) cut() (*disk, error) {
	after := &disk{root: d.root, image: d.image + ".cut"}
	from, err := os.Open(d.image)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := os.Create(after.image)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return nil, err
	}
	if err := d.close(); err != nil {
		return nil, err
	}
	if err := os.Rename(after.image, d.image); err != nil {
		return nil, err
	}
	after.image = d.image
	return after, after.mount()
}

// fill fills the disk up to free bytes; release makes room again.
func (d *disk) fill(free int64) (release func() error, err error) {
	path := filepath.Join(d.root, "ballast")
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	now, err := available(d.root)
	if err == nil && now > free {
		err = allocate(f, now-free)
	}
	release = func() error {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) { // as after a power cut
			return err
		}
		return nil
	}
	return release, errors.Join(err, f.Close())
}
