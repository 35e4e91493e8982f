package perftest

import "fmt"

// How tests fail: what is on standard error. The exit status is 1 each time. The sentences are those of recordings, except
// where a comment says otherwise.

const noSocket = "Unable to open file descriptor for socket connection Unable to init the socket connection\n"

// NoServer is said when nobody listens at the server's port.
func (o *Options) NoServer() string {
	if o.RDMACM {
		return "Unexpected CM event bl blka 8\n Unable to perform rdma_client function\n Unable to init the socket connection\n"
	}
	return fmt.Sprintf("Couldn't connect to %s:%d\n", o.Server, o.Port) + noSocket
}

// NoName is said when the server's name leads nowhere.
func (o *Options) NoName() string {
	return fmt.Sprintf("Name or service not known for %s:%d\nProblem in resolving basic address and port\n", o.Server, o.Port) + noSocket
}

// PortBusy is said of a port that something listens at.
func (o *Options) PortBusy() string {
	return fmt.Sprintf("Couldn't listen to port %d\n", o.Port) + noSocket
}

// NoDevice is said when there is no such device. That there is none at all was not recorded.
func (o *Options) NoDevice() string {
	if o.Device == "" {
		return " Did not detect devices \n If device exists, check if driver is up\n Unable to find the Infiniband/RoCE device\n"
	}
	return fmt.Sprintf("IB device %s not found\n Unable to find the Infiniband/RoCE device\n", o.Device)
}

const noContext = " Couldn't set the link layer\n Couldn't get context for the device\n"

// NoPort is said when the device has no such port.
func (o *Options) NoPort() string {
	return fmt.Sprintf(" Unable to query port %d attributes\n", o.IBPort) + noContext
}

// PortDown is said when the port has no link. It was not recorded.
func (o *Options) PortDown() string {
	return fmt.Sprintf(" Port number %d state is Down\n", o.IBPort) + noContext
}

// WrongGID is said by both sides when their GIDs are of different kinds, or one is empty.
const WrongGID = "\n Found Incompatibility issue with GID types.\n Please Try to use a different IP version.\n\n"

// PeerGone is said when the other side ended before its time.
func (o *Options) PeerGone() string {
	to := "from"
	if o.Server == "" {
		to = "to"
	}
	return fmt.Sprintf("ethernet_read_keys: Couldn't read remote address\n Unable to read %s socket/rdma_cm\n Failed to exchange data between server and clients\n", to)
}

// Why a completion has failed, as verbs number it.
const (
	WrongRequest = 9  // the responder does not know the operation
	NoAccess     = 10 // the responder has not so much memory
	NoAnswer     = 12 // the retries are used up
)

// Failed is said when a completion has failed. The syndrome of NoAnswer is that of mlx5, as users report it; what a latency test says
// last was not recorded.
func (o *Options) Failed(status int) string {
	syndrome, last := 0, " Failed to complete run_iter_bw function successfully\n"
	if status == NoAnswer {
		syndrome = 0x81
	}
	if o.Latency {
		last = "Test exited with Error\n"
	}
	return fmt.Sprintf(" Completion with error at client\n Failed status %d: wr_id 0 syndrom 0x%x\nscnt=%d, ccnt=0\n", status, syndrome, o.Depth) + last
}

// SlowClock is said, besides everything else, where the CPU's frequency is not the highest and nobody said -F. MHz.
func SlowClock(now, most float64) string {
	return fmt.Sprintf("Conflicting CPU frequency values detected: %f != %f. CPU Frequency is not max.\n", now, most)
}
