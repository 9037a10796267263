package store

import "golang.org/x/sys/unix"

func preallocate(fd int, size int64) error { return unix.Fallocate(fd, 0, 0, size) }
