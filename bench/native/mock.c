/* An upstream that costs next to nothing: the same chat answer to every request, for measuring what stands before it.
 *
 *     mock PORT          listens on 127.0.0.1, one thread
 *
 * A POST whose body has "stream":true gets server-sent events, any other POST a fixed JSON answer. The events are shaped
 * by words in the body, wherever a proxy has put them: "mock:EVENTS/GAP_US/FIRST_US". The first comes FIRST_US after the
 * request, together with the head and a role-only chunk; the others GAP_US apart, each in a chunk and a write of its own;
 * finish reason and [DONE] come with the last. Each carries the monotonic time of its writing, in nanoseconds.
 * GET /count answers how many POSTs came so far; any other GET a list of one model.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { INPUT_MAX = 1 << 20, CONNECTIONS_MAX = 8192 };

typedef struct {
    int fd;
    char *input;
    size_t held, room;
    /* The stream under way: events left, when the next is due. */
    long left, events;
    uint64_t due, gap;
} Connection;

static int poll_fd;
static Connection *streaming[CONNECTIONS_MAX];
static int streams;
static unsigned long posts;

static const char PLAIN[] =
    "{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion\",\"created\":1767225600,\"model\":\"mock\",\"choices\":[{"
    "\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"It is on its way and should be with you by noon "
    "tomorrow.\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":120,\"completion_tokens\":14,"
    "\"total_tokens\":134}}";
static const char MODELS[] = "{\"object\":\"list\",\"data\":[{\"id\":\"mock\",\"object\":\"model\",\"created\":1767225600,"
                             "\"owned_by\":\"bench\"}]}";
#define EVENT(delta, finish)                                                                                          \
    "data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"mock\"," \
    "\"choices\":[{\"index\":0,\"delta\":" delta ",\"finish_reason\":" finish "}]}\n\n"
static const char STREAM_HEAD[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
                                  "transfer-encoding: chunked\r\n\r\n";

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void drop(Connection *c) {
    for (int i = 0; i < streams; i++)
        if (streaming[i] == c) streaming[i--] = streaming[--streams];
    close(c->fd);
    free(c->input);
    free(c);
}

/* Answers are small and readers quick: what the socket does not take at once ends the connection. */
static int put(Connection *c, const char *bytes, size_t count) {
    return send(c->fd, bytes, count, MSG_NOSIGNAL) == (ssize_t)count ? 0 : -1;
}

static int put_json(Connection *c, const char *json) {
    char out[2048];
    int count = snprintf(out, sizeof out, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n%s",
                         strlen(json), json);
    return put(c, out, (size_t)count);
}

static size_t add_chunk(char *out, const char *data) {
    return (size_t)sprintf(out, "%zx\r\n%s\r\n", strlen(data), data);
}

/* Writes the event that is due; 1 when it was the last. */
static int put_event(Connection *c, uint64_t now) {
    char out[2048], event[512];
    size_t count = 0;
    if (c->left == c->events) {
        count = sizeof STREAM_HEAD - 1;
        memcpy(out, STREAM_HEAD, count);
        count += add_chunk(out + count, EVENT("{\"role\":\"assistant\",\"content\":\"\"}", "null"));
    }
    snprintf(event, sizeof event, EVENT("{\"content\":\"@%020llu\"}", "null"), (unsigned long long)now);
    count += add_chunk(out + count, event);
    c->left--;
    c->due = c->due + c->gap > now ? c->due + c->gap : now;
    if (c->left == 0) {
        count += add_chunk(out + count, EVENT("{}", "\"stop\""));
        count += add_chunk(out + count, "data: [DONE]\n\n");
        count += (size_t)sprintf(out + count, "0\r\n\r\n");
    }
    if (put(c, out, count) < 0) return -1;
    return c->left == 0;
}

static const char *find_header(const char *head, const char *end, const char *name) {
    size_t length = strlen(name);
    for (const char *line = memmem(head, (size_t)(end - head), "\r\n", 2); line && line + 2 < end;) {
        line += 2;
        if (!strncasecmp(line, name, length) && line[length] == ':') {
            for (line += length + 1; *line == ' ';) line++;
            return line;
        }
        line = memmem(line, (size_t)(end - line), "\r\n", 2);
    }
    return NULL;
}

/* The end of a chunked body at `at`, NULL while it is not whole. Chunk sizes stay within the body: words are still found. */
static char *chunked_end(char *at, char *end) {
    for (;;) {
        char *line = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (!line) return NULL;
        size_t size = strtoul(at, NULL, 16);
        if ((size_t)(end - line) < size + 4) return NULL;
        at = line + 2 + size + 2;
        if (size == 0) return at;
    }
}

static int wants_stream(const char *body, size_t count) {
    static const char key[] = "\"stream\":";
    const char *at = memmem(body, count, key, sizeof key - 1);
    if (!at) return 0;
    for (at += sizeof key - 1; at < body + count && *at == ' ';) at++;
    return at < body + count && *at == 't';
}

static int begin_stream(Connection *c, const char *body, size_t count) {
    const char *words = memmem(body, count, "mock:", 5);
    unsigned long events = 50, gap_us = 10000, first_us = 0;
    if (words) sscanf(words, "mock:%lu/%lu/%lu", &events, &gap_us, &first_us);
    if (streams == CONNECTIONS_MAX || events == 0) return -1;
    c->left = c->events = (long)events;
    c->gap = gap_us * 1000;
    c->due = now_ns() + first_us * 1000;
    streaming[streams++] = c;
    return 0;
}

static int answer(Connection *c, const char *head, const char *body, size_t count) {
    if (head[0] == 'P') {
        posts++;
        return wants_stream(body, count) ? begin_stream(c, body, count) : put_json(c, PLAIN);
    }
    if (strncmp(head, "GET /count ", 11)) return put_json(c, MODELS);
    char text[64];
    snprintf(text, sizeof text, "{\"posts\":%lu}", posts);
    return put_json(c, text);
}

/* Answers the request at the front of the input, if it is whole: 1 answered, 0 not whole, -1 drop. */
static int serve_one(Connection *c) {
    char *end = c->input + c->held;
    char *body = memmem(c->input, c->held, "\r\n\r\n", 4);
    if (!body) return 0;
    body += 4;
    const char *length = find_header(c->input, body, "content-length");
    const char *coding = find_header(c->input, body, "transfer-encoding");
    const char *expect = find_header(c->input, body, "expect");
    if (expect && body == end) return put(c, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    char *rest = coding ? chunked_end(body, end) : body + (length ? strtoul(length, NULL, 10) : 0);
    if (!rest || rest > end) return 0;
    if (answer(c, c->input, body, (size_t)(rest - body)) < 0) return -1;
    memmove(c->input, rest, (size_t)(end - rest));
    c->held = (size_t)(end - rest);
    return 1;
}

/* Requests of a connection are answered one after the other. */
static int serve(Connection *c) {
    while (c->left == 0 && c->held > 0) {
        int done = serve_one(c);
        if (done < 0) return -1;
        if (done == 0) break;
    }
    return 0;
}

static void on_readable(Connection *c) {
    if (c->room - c->held < 4096) c->input = realloc(c->input, c->room = c->room ? c->room * 2 : 16384);
    ssize_t count = c->room > INPUT_MAX ? 0 : recv(c->fd, c->input + c->held, c->room - c->held, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
        drop(c);
        return;
    }
    c->held += (size_t)count;
    if (serve(c) < 0) drop(c);
}

static void on_connect(int listener) {
    int one = 1, fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        Connection *c = calloc(1, sizeof *c);
        c->fd = fd;
        epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN, .data.ptr = c});
    }
}

/* Writes every event that is due and gives the nanoseconds until the next, -1 when there is none. */
static int64_t run_streams(void) {
    uint64_t now = now_ns(), next = UINT64_MAX;
    for (int i = 0; i < streams; i++) {
        Connection *c = streaming[i];
        if (c->due <= now) {
            int done = put_event(c, now_ns());
            if (done != 0) {
                streaming[i--] = streaming[--streams];
                if (done < 0 || serve(c) < 0) drop(c);
                continue;
            }
        }
        if (c->due < next) next = c->due;
    }
    if (next == UINT64_MAX) return streams ? 0 : -1;
    now = now_ns();
    return next > now ? (int64_t)(next - now) : 0;
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "mock PORT\n"), 2;
    signal(SIGPIPE, SIG_IGN);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 1024)) return perror("mock"), 1;
    poll_fd = epoll_create1(0);
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &(struct epoll_event){.events = EPOLLIN, .data.ptr = NULL});
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        struct epoll_event events[256];
        int64_t wait = run_streams();
        struct timespec until = {wait / 1000000000, wait % 1000000000};
        int count = epoll_pwait2(poll_fd, events, 256, wait < 0 ? NULL : &until, NULL);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr) on_readable(events[i].data.ptr);
            else on_connect(listener);
        }
    }
}
