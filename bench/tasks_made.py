# SPDX-License-Identifier: Apache-2.0
"""The tasks of bench/tasks.py: what a network is asked, and how its answers are scored.

A task draws its samples from a seed (text, sounds) or takes files that every machine has, so that anybody gets the same kind
without a data set. `samples(seed, n, run)` gives arrays by input, samples along the first axis, and what is right; `run` is
the dense network, which a task with states needs. `score(run, arrays, right)` is a percentage: of what is right, or, where
nothing says what is right, of the dense network's answers (`run.dense`).
"""
import importlib.util
import json
import os
import pathlib
import random

import numpy as np

SHARED = pathlib.Path(os.environ.get("LAC_SHARED") or pathlib.Path(__file__).resolve().parent.parent.parent / "shared")
SYLLABLES = "ba co de fi gu ha jo ke li mu na po qui ra se to vu wa xy zo tion er ing al st ".split(" ")[:-1]
LINE = (48, 320)    # height and width of a line of text, as PP-OCR reads it
CAPTCHA = (64, 160)
PAGE_SIZE = 320
RATE, FRAME, CONTEXT = 16000, 512, 64  # of silero's sounds
PITCH_RATE, PITCH_SAMPLES, PITCH_FRAMES = 22050, 43844, 172
OVERLAP = 0.5       # of a box found and a box drawn, that it counts as found


def package_file(package, path):
    """A file inside an installed package, without importing it."""
    found = importlib.util.find_spec(package)
    file = pathlib.Path(found.submodule_search_locations[0]) / path if found else None
    return file if file and file.exists() else None


def text_of(draw, most):
    """Made-up words and numbers, up to so many characters."""
    words = []
    while True:
        word = str(draw.randrange(10 ** draw.randint(1, 5))) if draw.random() < 0.3 else "".join(draw.choices(SYLLABLES, k=2))
        words.append(word.capitalize() if draw.random() < 0.3 else word)
        if len(" ".join(words)) > most:
            return " ".join(words[:-1]) or words[0][:most]


def rendered(draw, text, size):
    """The text in one colour on another, as small as its letters: PIL's own font, which needs no file."""
    from PIL import Image, ImageDraw, ImageFont
    font = ImageFont.load_default(size)
    left, top, right, bottom = font.getbbox(text)
    paper, ink = draw.randrange(150, 256), draw.randrange(0, 100)
    image = Image.new("RGB", (int(right - left) + 8, int(bottom - top) + 8), tuple(paper - draw.randrange(30) for _ in range(3)))
    ImageDraw.Draw(image).text((4 - left, 4 - top), text, font=font, fill=tuple(ink + draw.randrange(50) for _ in range(3)))
    return image


def spoiled(draw, image, noise):
    """Blurred a little, with noise on it: uint8, height x width x 3."""
    from PIL import ImageFilter
    array = np.asarray(image.filter(ImageFilter.GaussianBlur(draw.random())), np.float32)
    array = array + np.random.default_rng(draw.randrange(2 ** 31)).normal(0, noise * draw.random(), array.shape)
    return np.clip(array, 0, 255)


def line_of_text(draw, text):
    """[3, 48, 320], blue first, about -1 to 1; grey 0 right of the text."""
    height, width = LINE
    image = rendered(draw, text, draw.randint(20, 44))
    image = image.resize((min(width, max(8, round(image.width * height / image.height))), height))
    array = np.zeros((3, height, width), np.float32)
    array[:, :, :image.width] = spoiled(draw, image, 30)[:, :, ::-1].transpose(2, 0, 1) / 127.5 - 1
    return array


def distance(a, b):
    """Edits between two strings."""
    row = list(range(len(b) + 1))
    for at, letter in enumerate(a):
        before, row[0] = row[0], at + 1
        for to, other in enumerate(b):
            before, row[to + 1] = row[to + 1], min(row[to] + 1, row[to + 1] + 1, before + (letter != other))
    return row[-1]


class Task:
    n_calibration, n_test = 64, 128
    n_many = 704          # samples to fit and to show a loss of 1 %
    constants = {}
    sample_axis = {}      # of an input whose samples are not along axis 0
    batch = 16            # samples that are scored at a time

    def file(self):
        return package_file(self.package, self.path)

    def answers(self, run, arrays):
        n = len(next(iter(arrays.values())))
        parts = [run({name: values[at:at + self.batch] for name, values in arrays.items()}) for at in range(0, n, self.batch)]
        return [np.concatenate(part) for part in zip(*parts)]


class Recognition(Task):
    name, what, kind = "rec", "PP-OCRv4 recognition", "characters of rendered lines"
    package, path = "rapidocr_onnxruntime", "models/ch_PP-OCRv4_rec_infer.onnx"

    def samples(self, seed, n, run):
        draw = random.Random(seed)
        texts = [text_of(draw, draw.randint(4, 22)) for _ in range(n)]
        return {"x": np.stack([line_of_text(draw, text) for text in texts])}, texts

    def score(self, run, arrays, right):
        letters = ["", *run.metadata["character"].splitlines(), " "]
        edits = 0
        for best, text in zip(self.answers(run, arrays)[0].argmax(axis=2), right):
            kept = [best[at] for at in range(len(best)) if best[at] and (at == 0 or best[at] != best[at - 1])]
            edits += min(len(text), distance("".join(letters[at] for at in kept if at < len(letters)), text))
        return 100 * (1 - edits / sum(map(len, right)))


class Rotation(Task):
    name, what, kind = "cls", "PP-OCR direction", "lines upright or rotated"
    package, path = "rapidocr_onnxruntime", "models/ch_ppocr_mobile_v2.0_cls_infer.onnx"
    n_many, n_test = 1086, 256

    def samples(self, seed, n, run):
        draw = random.Random(seed)
        lines, rotated = [], [draw.random() < 0.5 for _ in range(n)]
        for rotate in rotated:
            line = line_of_text(draw, text_of(draw, draw.randint(8, 14)))[:, :, :192]
            lines.append(line[:, ::-1, ::-1] if rotate else line)
        return {"x": np.stack(lines)}, rotated

    def score(self, run, arrays, right):
        return 100 * float(np.mean(self.answers(run, arrays)[0].argmax(axis=1) == np.array(right)))


class Detection(Task):
    name, what, kind = "det", "PP-OCRv4 detection", "boxes of rendered lines, F1"
    package, path = "rapidocr_onnxruntime", "models/ch_PP-OCRv4_det_infer.onnx"
    n_many, n_test, batch = 192, 64, 8

    def samples(self, seed, n, run):
        draw = random.Random(seed)
        pages = [self.page(draw) for _ in range(n)]
        return {"x": np.stack([page for page, _ in pages])}, [boxes for _, boxes in pages]

    @staticmethod
    def page(draw):
        from PIL import Image
        page = Image.new("RGB", (PAGE_SIZE, PAGE_SIZE), tuple(draw.randrange(140, 256) for _ in range(3)))
        boxes, top = [], draw.randrange(4, 40)
        while top < PAGE_SIZE - 60:
            line = rendered(draw, text_of(draw, draw.randint(4, 16)), draw.randint(14, 30))
            left = draw.randrange(4, max(5, PAGE_SIZE - line.width - 4))
            page.paste(line, (left, top))
            boxes.append((left, top, min(PAGE_SIZE, left + line.width), top + line.height))
            top += line.height + draw.randrange(12, 50)
        return spoiled(draw, page, 15)[:, :, ::-1].transpose(2, 0, 1).astype(np.float32) / 127.5 - 1, boxes

    def score(self, run, arrays, right):
        hits = found_all = 0
        for scores, drawn in zip(self.answers(run, arrays)[0], right):
            found = boxes_of(scores[0])
            found_all += len(found)
            hits += sum(any(overlap(box, other) >= OVERLAP for other in found) for box in drawn)
        return 200 * hits / (found_all + sum(map(len, right)))


def boxes_of(scores):
    """Boxes round what hangs together above 0.3, grown by 1.6 x area / perimeter, as PP-OCR does it."""
    mask, boxes = scores > 0.3, []
    seen = np.zeros(mask.shape, bool)
    for row, column in zip(*np.nonzero(mask)):
        if seen[row, column]:
            continue
        stack, rows, columns, total = [(row, column)], [], [], 0.0
        seen[row, column] = True
        while stack:
            y, x = stack.pop()
            rows.append(y)
            columns.append(x)
            total += scores[y, x]
            for to_y, to_x in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
                if 0 <= to_y < mask.shape[0] and 0 <= to_x < mask.shape[1] and mask[to_y, to_x] and not seen[to_y, to_x]:
                    seen[to_y, to_x] = True
                    stack.append((to_y, to_x))
        height, width = max(rows) - min(rows) + 1, max(columns) - min(columns) + 1
        if min(height, width) >= 3 and total / len(rows) >= 0.5:
            grow = 1.6 * height * width / (2 * (height + width))
            boxes.append((min(columns) - grow, min(rows) - grow, max(columns) + 1 + grow, max(rows) + 1 + grow))
    return boxes


def overlap(a, b):
    """Intersection over union."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(0.0, width) * max(0.0, height)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


class Captcha(Task):
    name, what, kind = "ddddocr", "ddddocr", "captchas, as dense reads them"
    package, path = "ddddocr", "common.onnx"
    n_test = 96

    def samples(self, seed, n, run):
        from PIL import Image, ImageDraw
        draw, images = random.Random(seed), []
        for _ in range(n):
            image = Image.new("RGB", CAPTCHA[::-1], tuple(draw.randrange(180, 256) for _ in range(3)))
            for at in range(draw.choice((4, 4, 5))):
                letter = rendered(draw, draw.choice("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"), draw.randint(30, 44))
                slanted = letter.rotate(draw.uniform(-25, 25), expand=True, fillcolor=letter.getpixel((0, 0)))
                image.paste(slanted, (8 + 30 * at + draw.randrange(6), draw.randrange(2, 18)))
            for _ in range(draw.randrange(4)):
                ends = [(draw.randrange(CAPTCHA[1]), draw.randrange(CAPTCHA[0])) for _ in range(2)]
                ImageDraw.Draw(image).line(ends, fill=tuple(draw.randrange(200) for _ in range(3)), width=1)
            images.append(spoiled(draw, image, 20).mean(axis=2) / 255)
        return {"input1": np.stack(images).astype(np.float32)[:, None]}, None

    def read(self, run, arrays):
        """Scores of every letter at every place; the file takes one image at a time."""
        texts = []
        for image in arrays["input1"]:
            best = run({"input1": image[None]})[0][:, 0].argmax(axis=1)
            texts.append([int(best[at]) for at in range(len(best)) if best[at] and (at == 0 or best[at] != best[at - 1])])
        return texts

    def score(self, run, arrays, right):
        return 100 * float(np.mean([a == b for a, b in zip(self.read(run, arrays), self.read(run.dense, arrays))]))


class Speech(Task):
    name, what, kind = "silero", "Silero VAD, 16 kHz", "frames of made speech, as dense decides"
    package, path = "silero_vad", "data/silero_vad_16k_op15.onnx"
    n_calibration, n_test = 256, 16  # frames; sounds of ten seconds
    constants, sample_axis = {"sr": np.array(RATE, np.int64)}, {"state": 1}

    @staticmethod
    def sound(rng, seconds):
        """Syllables: harmonics of a voice under formants that move, between pauses, over noise."""
        n = int(seconds * RATE)
        sound, at = rng.normal(0, 10 ** rng.uniform(-3.5, -1.8), n), 0
        while at < n:
            at += int(rng.choice([0.02, 0.1, 0.8], p=[0.6, 0.3, 0.1]) * rng.uniform(0.5, 1.5) * RATE)
            length = min(n - at, int(rng.uniform(0.08, 0.3) * RATE))
            if length < 200:
                break
            pitch = np.cumsum(rng.uniform(90, 260) * np.linspace(1, rng.uniform(0.8, 1.2), length)) / RATE
            formants = [rng.uniform(*span) * np.linspace(1, rng.uniform(0.8, 1.25), length)
                        for span in ((250, 850), (800, 2400), (2300, 3200))]
            voice = np.zeros(length)
            for harmonic in range(1, 30):
                hertz = harmonic * pitch[-1] / length * RATE
                weight = sum(np.exp(-((hertz - formant) / 150) ** 2) for formant in formants) + 0.02
                voice += weight / harmonic ** 0.5 * np.sin(2 * np.pi * harmonic * pitch)
            sound[at:at + length] += 0.15 * rng.uniform(0.2, 1) * voice * np.hanning(length)
            at += length
        return np.clip(sound, -1, 1).astype(np.float32)

    def follow(self, run, sounds):
        """Frames, states before them and answers, [frame, sound, ...], with each sound's state handed on."""
        state = np.zeros((2, len(sounds), 128), np.float32)
        frames, states, answers = [], [], []
        for at in range(0, sounds.shape[1] - FRAME - CONTEXT + 1, FRAME):
            frames.append(np.ascontiguousarray(sounds[:, at:at + FRAME + CONTEXT]))
            states.append(state)
            speech, state = run({"input": frames[-1], "state": state, **self.constants})
            answers.append(speech[:, 0])
        return np.stack(frames), np.stack(states), np.stack(answers)

    def samples(self, seed, n, run):
        rng = np.random.default_rng(seed)
        if n == self.n_test:
            return {"sound": np.stack([self.sound(rng, 10) for _ in range(n)])}, None
        frames, states, _ = self.follow(run, np.stack([self.sound(rng, 10) for _ in range(8)]))
        chosen = rng.permutation(frames.shape[0] * frames.shape[1])[:n]
        return {"input": frames.reshape(-1, frames.shape[2])[chosen],
                "state": states.transpose(1, 0, 2, 3).reshape(2, -1, 128)[:, chosen]}, None

    def score(self, run, arrays, right):
        decided, dense = (self.follow(each, arrays["sound"])[2] > 0.5 for each in (run, run.dense))
        return 100 * float(np.mean(decided == dense))


class FileTypes(Task):
    name, what, kind = "magika", "Magika", "types of this machine's files"
    package, path = "magika", "models/standard_v3_3/model.onnx"
    ENDINGS = {".py": "python", ".c": "c", ".h": "c", ".sh": "shell", ".html": "html", ".xml": "xml", ".json": "json", ".md": "markdown",
               ".css": "css", ".js": "javascript", ".so": "elf", ".png": "png", ".gz": "gzip", ".svg": "svg", ".po": "po",
               ".pyc": "pythonbytecode", ".pl": "perl", ".pm": "perl", ".cmake": "cmake", ".tcl": "tcl", ".yml": "yaml",
               ".yaml": "yaml", ".ttf": "ttf", ".rst": "rst", ".onnx": "onnx", ".pdf": "pdf", ".cpp": "cpp", ".hpp": "cpp"}
    n_calibration, n_many, n_test = 128, 1086, 256
    MOST, ENOUGH = 40, 2000  # of one type: files that are taken, files that are looked at

    @staticmethod
    def window(path):
        """The first and the last 1024 bytes of what is not space, as Magika takes them; 256 where there are none."""
        with open(path, "rb") as file:
            begin = file.read(4096).lstrip()[:1024]
            file.seek(max(0, os.path.getsize(path) - 4096))
            end = file.read(4096).rstrip()[-1024:]
        ids = np.full(2048, 256, np.int32)
        ids[:len(begin)] = list(begin)
        ids[2048 - len(end):] = list(end)
        return ids

    def files(self):
        found = {}
        for top in ("/usr/share", "/usr/lib", "/usr/include", os.path.dirname(os.__file__)):
            for folder, _, names in os.walk(top):
                for name in sorted(names):
                    path, kind = os.path.join(folder, name), self.ENDINGS.get(os.path.splitext(name)[1])
                    if (kind and len(found.setdefault(kind, [])) < self.ENOUGH and os.path.isfile(path)
                            and not os.path.islink(path) and os.path.getsize(path) >= 64):
                        found[kind].append(path)
        return found

    def samples(self, seed, n, run):
        """Every second file of a type is for tests, so that none is for both."""
        draw, chosen, part = random.Random(seed), [], int(n == self.n_test)
        for kind, paths in sorted(self.files().items()):
            mine = sorted(paths)[part::2]
            chosen += [(path, kind) for path in draw.sample(mine, min(len(mine), self.MOST))]
        chosen = draw.sample(chosen, min(len(chosen), n))
        return {"bytes": np.stack([self.window(path) for path, _ in chosen])}, [kind for _, kind in chosen]

    def score(self, run, arrays, right):
        labels = json.loads((self.file().parent / "config.min.json").read_text())["target_labels_space"]
        answers = [labels[at] for at in self.answers(run, arrays)[0].argmax(axis=1)]
        return 100 * float(np.mean([answer == kind for answer, kind in zip(answers, right)]))


class Notes(Task):
    name, what, kind = "pitch", "Basic Pitch", "notes of made tones, F1 over frames"
    package, path = "basic_pitch", "saved_models/icassp_2022/nmp.onnx"
    n_calibration, n_test, batch = 64, 48, 4

    def samples(self, seed, n, run):
        rng = np.random.default_rng(seed)
        sounds, right = np.zeros((n, PITCH_SAMPLES, 1), np.float32), np.zeros((n, PITCH_FRAMES, 88), bool)
        for sound, held in zip(sounds, right):
            for _ in range(rng.integers(2, 7)):
                key, begin, seconds = rng.integers(15, 70), rng.uniform(0, 1.6), rng.uniform(0.25, 0.9)
                time = np.arange(PITCH_SAMPLES) / PITCH_RATE - begin
                on = (time >= 0) & (time < seconds)
                hertz, fade = 27.5 * 2 ** (key / 12), np.exp(-3 * np.maximum(time, 0)) * np.minimum(1, np.maximum(time, 0) / 0.01)
                tone = sum(np.sin(2 * np.pi * hertz * k * time) / k ** rng.uniform(1, 2) for k in range(1, 9) if hertz * k < 10000)
                sound[:, 0] += (0.2 * rng.uniform(0.4, 1) * on * fade * tone).astype(np.float32)
                rate = PITCH_FRAMES / (PITCH_SAMPLES / PITCH_RATE)
                held[int(begin * rate):int((begin + seconds) * rate), key] = True
            sound[:, 0] += rng.normal(0, 0.002, PITCH_SAMPLES)
        return {"serving_default_input_2:0": sounds}, right

    def score(self, run, arrays, right):
        found = self.answers(run, arrays)[run.outputs.index("StatefulPartitionedCall:1")] > 0.3
        return 200 * float((found & right).sum() / (found.sum() + right.sum()))


class Photographs(Task):
    name, what, kind = "lite0", "EfficientNet-Lite0", "photographs, top-1"
    n_calibration, n_test = 50, 50

    def file(self):
        file = SHARED / "models/efficientnet_lite0.onnx"
        return file if file.exists() and (SHARED / "data/imagenet-sample").exists() else None

    @staticmethod
    def pixels(path):
        from PIL import Image
        image = Image.open(path).convert("RGB")
        ratio = 256 / min(image.size)
        image = image.resize((round(image.width * ratio), round(image.height * ratio)), Image.BICUBIC)
        left, top = (image.width - 224) // 2, (image.height - 224) // 2
        array = np.asarray(image.crop((left, top, left + 224, top + 224)), np.float32)
        return (array.transpose(2, 0, 1) - 127) / 128

    def samples(self, seed, n, run):
        """Half of the photographs each; seeds of the two halves differ by one."""
        classes = [line.split()[1] for line in (SHARED / "models/imagenet_classes.txt").read_text().splitlines()]
        paths = sorted((SHARED / "data/imagenet-sample").glob("*/*"))
        random.Random(0).shuffle(paths)
        mine = paths[seed % 2::2]
        return ({"input": np.stack([self.pixels(path) for path in mine])}, [classes.index(path.parent.name) for path in mine])

    def score(self, run, arrays, right):
        return 100 * float(np.mean(self.answers(run, arrays)[0].argmax(axis=1) == np.array(right)))


TASKS = [Recognition(), Rotation(), Detection(), Captcha(), Speech(), FileTypes(), Notes(), Photographs()]
