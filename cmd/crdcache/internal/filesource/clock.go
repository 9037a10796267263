package filesource

import (
	"bytes"
	"slices"
	"sync/atomic"
	"time"

	"github.com/crdcache/crdcache/internal/manifest"
)

// clock shows the newest time in files.
type clock struct {
	byFile map[*manifest.File]fileTime // settle and read are not called concurrently
	newest atomic.Value                // the greatest, a string
}

// fileTime is the newest time in a file when it was read for the readCount-th time, and before that.
type fileTime struct {
	newest, before string
	readCount      int
}

// settle sets the time after files were read or deleted. Like its objects, the times of an earlier content
// count if the file had errors.
func (c *clock) settle(deleted map[*manifest.File]bool) {
	newest := ""
	for f, at := range c.byFile {
		switch {
		case deleted[f]:
			delete(c.byFile, f)
		case f.HadErrors:
			newest = max(newest, at.newest, at.before)
		case at.readCount == f.ReadCount:
			newest = max(newest, at.newest)
		}
	}
	c.newest.Store(newest)
}

// pastTimes are fields of times that have passed. Others, such as an end of validity, can lie ahead.
var pastTimes = []string{"completionTime", "completionTimestamp", "creationTimestamp", "eventTime", "finishedAt",
	"lastHeartbeatTime", "lastObservedTime", "lastScheduleTime", "lastSuccessfulTime", "lastTimestamp",
	"lastTransitionTime", "lastUpdateTime", "renewTime", "startTime", "startTimestamp", "startedAt", "time"}

// read reads the times in an object of a file. It must not be called concurrently.
func (c *clock) read(f *manifest.File, object []byte) {
	at := c.byFile[f]
	if at.readCount != f.ReadCount {
		at = fileTime{before: max(at.newest, at.before), readCount: f.ReadCount}
	}
	defer func() { c.byFile[f] = at }()
	for end := 0; ; {
		i := bytes.Index(object[end:], []byte(`Z"`))
		if i < 0 {
			return
		}
		end += i + 1
		value := object[max(0, end-len(time.RFC3339Nano)):end]
		if value = value[bytes.LastIndexByte(value, '"')+1:]; string(value) <= at.newest {
			continue
		}
		name := bytes.TrimRight(object[:end-len(value)], "\": \t\r\n")
		name = name[bytes.LastIndexByte(name, '"')+1:]
		_, err := time.Parse(time.RFC3339, string(value))
		if err == nil && slices.Contains(pastTimes, string(name)) {
			at.newest = string(value)
		}
	}
}

// time returns the newest time, or zero if there is none.
func (c *clock) time() time.Time {
	newest, _ := c.newest.Load().(string)
	t, _ := time.Parse(time.RFC3339, newest)
	return t
}
