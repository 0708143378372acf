package bucket

import (
	"context"
	"time"

	"ggforge/fault"
	"ggforge/internal/io/fetch"
)

// Incomplete is an incomplete multipart upload.
type Incomplete struct {
	Name  Name
	ID    string
	Begun time.Time
}

// maxIncomplete limits the number of listed uploads.
const maxIncomplete = 100_000

// Incomplete lists the incomplete multipart uploads in a folder.
func (c *Client) Incomplete(ctx context.Context, folder Name) (list []Incomplete, err error) {
	folder = folder.Folder()
	err = c.list(ctx, folder.String(), func(ctx context.Context) error {
		list = nil
		for key, id := "", ""; ; {
			ctx, _, stop := fetch.Watch(ctx, c.opt.Stall)
			page, err := c.core.ListMultipartUploads(ctx, folder.Bucket, folder.Key, key, id, "", 1000)
			err = explained(fetch.Quiet(ctx, err), folder.String())
			stop()
			if err != nil {
				return err
			}
			for _, u := range page.Uploads {
				list = append(list, Incomplete{Name{folder.Bucket, u.Key}, u.UploadID, u.Initiated})
			}
			if !page.IsTruncated {
				return nil
			}
			if page.NextKeyMarker == key && page.NextUploadIDMarker == id || len(list) > maxIncomplete {
				return fault.Errorf(fault.Broken, "%s: the server's list of multipart uploads does not end", folder)
			}
			key, id = page.NextKeyMarker, page.NextUploadIDMarker
		}
	})
	return list, err
}

// Abort aborts an upload: the server deletes its parts.
func (c *Client) Abort(ctx context.Context, u Incomplete) error {
	return c.retry(ctx, func() (int, error) {
		ctx, _, stop := fetch.Watch(ctx, c.opt.Stall)
		defer stop()
		return 0, explained(fetch.Quiet(ctx, c.core.AbortMultipartUpload(ctx, u.Name.Bucket, u.Name.Key, u.ID)),
			u.Name.String())
	})
}
