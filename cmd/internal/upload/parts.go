package upload

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"ggforge/internal/io/bucket"
	"ggforge/writer"
)

// Direct reports whether a run is one of several whose parts send pieces of the objects: --part or --finish without a
// folder that all of them share.
func Direct(cmd *cli.Command) bool {
	return (cmd.Bool("finish") || cmd.String("part") != "") && !cmd.IsSet("work-dir") && !cmd.IsSet("part-files")
}

// Store returns the store to which parts send pieces of the outputs, nil if they are files.
func (p *Destination) Store() writer.Store {
	if p == nil || !p.direct {
		return nil
	}
	return store{p}
}

// store is a Destination as the store of a write.
type store struct{ *Destination }

// maxSmall is the largest small object that is read.
const maxSmall = 256 << 20

func (s store) Name(path string) string { return s.Object(path) }

func (s store) Mark(ctx context.Context, path string) (string, bool, error) {
	return s.client.Mark(ctx, s.object(path))
}

func (s store) Create(ctx context.Context, name string, data []byte) (bool, error) {
	return s.client.Create(ctx, s.object(name), data)
}

func (s store) Put(ctx context.Context, name string, data []byte) error {
	return s.client.Put(ctx, s.object(name), data)
}

func (s store) Get(ctx context.Context, name string) ([]byte, time.Duration, error) {
	return s.client.Get(ctx, s.object(name), maxSmall)
}

func (s store) List(ctx context.Context, prefix string, most int) (names []string, err error) {
	n := s.object(prefix)
	i := strings.LastIndex(n.Key, "/") + 1
	list, err := s.client.ListPrefix(ctx, bucket.Name{Bucket: n.Bucket, Key: n.Key[:i]}, n.Key[i:], most)
	for _, o := range list {
		names = append(names, o.Name[len(n.Key)-i:])
	}
	return names, err
}

func (s store) Remove(ctx context.Context, name string) error {
	return s.client.Remove(ctx, s.object(name))
}

func (s store) Begin(ctx context.Context, path, mark string) (string, error) {
	return s.client.Begin(ctx, s.object(path), mark)
}

func (s store) Abort(ctx context.Context, path, id string) error {
	err := s.client.Abort(ctx, bucket.Incomplete{Name: s.object(path), ID: id})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s store) Pieces(ctx context.Context, path, id string, from, to int) (pieces []writer.Piece, err error) {
	list, err := s.client.Pieces(ctx, s.object(path), id, from, to)
	for _, p := range list {
		pieces = append(pieces, writer.Piece(p))
	}
	return pieces, err
}

func (s store) Send(ctx context.Context, path, id string, n int, data []byte) (writer.Piece, error) {
	p, err := s.client.Send(ctx, s.object(path), id, n, data)
	return writer.Piece(p), err
}

func (s store) Same(p writer.Piece, data []byte) (writer.Piece, bool) {
	same, ok := bucket.Piece(p).Same(data)
	return writer.Piece(same), ok
}

func (s store) Complete(ctx context.Context, path, id string, size int64, pieces []writer.Piece, force bool) error {
	list := make([]bucket.Piece, len(pieces))
	for i, p := range pieces {
		list[i] = bucket.Piece(p)
	}
	return s.client.Complete(ctx, s.object(path), id, size, list, force)
}

func (s store) Sweep(ctx context.Context, path string) error {
	return s.client.Sweep(ctx, s.object(path))
}
