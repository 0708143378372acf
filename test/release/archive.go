package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// archive packs a platform's commands with the notes, in a folder of the archive's name.
func (r *release) archive(p platform) (string, error) {
	list, err := r.entries(p)
	if err != nil {
		return "", err
	}
	folder := fmt.Sprintf("%s_%s_%s_%s", name, r.version, p.os, p.arch)
	for i := range list {
		list[i].name = folder + "/" + list[i].name
	}
	file, write := folder+".tar.gz", writeTar
	if p.os == "windows" {
		file, write = folder+".zip", writeZip
	}
	out, err := os.Create(filepath.Join(r.out, file))
	if err != nil {
		return "", err
	}
	defer out.Close()
	if err := write(out, list, r.date); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	return file, out.Close()
}

// writeTar writes files to a compressed archive of tar. They belong to root.
func writeTar(w io.Writer, list []entry, date time.Time) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, e := range list {
		if err := addFile(e, func(size int64) (io.Writer, error) {
			return t, t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Size: size,
				ModTime: date, Format: tar.FormatUSTAR})
		}); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

// writeZip writes files to an archive of zip.
func writeZip(w io.Writer, list []entry, date time.Time) error {
	z := zip.NewWriter(w)
	for _, e := range list {
		if err := addFile(e, func(int64) (io.Writer, error) {
			h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: date.UTC()}
			h.SetMode(e.mode)
			return z.CreateHeader(h)
		}); err != nil {
			return err
		}
	}
	return z.Close()
}

// addFile copies a file to the writer that begin returns for its size.
func addFile(e entry, begin func(size int64) (io.Writer, error)) error {
	f, err := os.Open(e.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w, err := begin(info.Size())
	if err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
