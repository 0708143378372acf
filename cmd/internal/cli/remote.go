package cli

import (
	"os"

	"ggforge/checkpoint"
	"ggforge/internal/io/bucket"
)

// Remote returns the settings for reading from servers, from environment variables that other tools read, too:
// HF_ENDPOINT and HF_TOKEN for the hub, those of bucket.Environment for objects.
func Remote() checkpoint.Remote {
	s3 := bucket.Environment()
	return checkpoint.Remote{Endpoint: os.Getenv("HF_ENDPOINT"), Token: os.Getenv("HF_TOKEN"), S3Endpoint: s3.Endpoint,
		S3Region: s3.Region}
}
