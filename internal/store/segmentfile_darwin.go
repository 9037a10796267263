package store

import "golang.org/x/sys/unix"

func preallocate(fd int, size int64) error {
	return unix.FcntlFstore(uintptr(fd), unix.F_PREALLOCATE, &unix.Fstore_t{Flags: unix.F_ALLOCATEALL,
		Posmode: unix.F_PEOFPOSMODE, Length: size})
}
